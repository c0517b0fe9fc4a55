"""Verdicts in words: on the points of T(b), on one setting in a table, and on any table of times."""

from functools import singledispatch

from study.analysis.analysis import Group, Level
from study.analysis.answers.curve import CurveFit
from study.analysis.stats import findings
from study.analysis.stats.findings import EqualTimes, Verdict
from study.analysis.stats.fits import Bounds
from study.analysis.stats.optimum import Optimum, label
from study.analysis.words import coefficients, interval, law_formula, listed, number

LAWS = {
    "constant": "a constant",
    "inverse": "T0 + A/b",
    "power": "the power law",
    "rise": "a curve that falls and rises again",
    "hinge": "a curve with a bend",
}


@singledispatch
def verdict_sentence(verdict: Verdict) -> str:
    """Return the verdict on a curve as a sentence or two."""
    raise NotImplementedError(f"no sentence for {type(verdict).__name__}")


@verdict_sentence.register
def _too_few_points(verdict: findings.TooFewPoints) -> str:
    return "The points are too few to compare any law with a constant."


@verdict_sentence.register
def _unreplicated(verdict: findings.Unreplicated) -> str:
    once = "Without enough replicates there is no estimate of the noise"
    if verdict.law is None:
        return f"{once}, and no law fits better than a constant."
    return f"{once}; {LAWS[verdict.law]} follows the points most closely, which replicates would have to confirm."


@verdict_sentence.register
def _equal_times(verdict: findings.EqualTimes) -> str:
    return "Repeated runs took equal times, so their noise is not known, and no law can be weighed against it."


@verdict_sentence.register
def _drifted(verdict: findings.Drifted) -> str:
    return (
        "No law fits better than a constant: the machine itself changed by more than the settings differ "
        f"({verdict.machine_change:.2f}x against {verdict.level_change:.2f}x)."
    )


@verdict_sentence.register
def _no_difference(verdict: findings.NoDifference) -> str:
    return "No law fits better than a constant: the test of all settings at once finds no difference beyond the noise."


@verdict_sentence.register
def _no_law(verdict: findings.NoLaw) -> str:
    return "The settings differ, but no law describes their times better than a constant."


@verdict_sentence.register
def _power_law(verdict: findings.PowerLaw) -> str:
    text = (
        "The power law describes the times (s; 95%): Tmin + c/b^alpha with "
        f"{coefficients(verdict.coefficients, verdict.intervals)}."
    )
    if not verdict.inverse_fits:
        return text
    bounds = verdict.intervals["alpha"]
    one = ": alpha = 1 is not excluded" if (bounds.low or 0) <= 1 <= (bounds.high or 1) else ""
    return f"{text} T0 + A/b describes them about as well{one}."


@verdict_sentence.register
def _turn(verdict: findings.Turn) -> str:
    return (
        "The time falls and rises again: no power law. If it turns once, it is shortest between "
        f"{label(verdict.low)} and {label(verdict.high)} (95%)."
    )


@verdict_sentence.register
def _rise(verdict: findings.Rise) -> str:
    return "The time rises, and no fall before that shows: no falling power law."


@verdict_sentence.register
def _zigzag(verdict: findings.Zigzag) -> str:
    return "The time goes up and down, by more than the noise, and not by one fall and one rise: no law describes that."


@verdict_sentence.register
def _other_law(verdict: findings.OtherLaw) -> str:
    values = verdict.coefficients
    missing = f"The power law's exponent says nothing here: {_doubt(verdict)}."
    if verdict.misses is not None:
        missing = f"Yet this law misses a mean by {100 * verdict.misses:.2g}%, more than the noise. {missing}"
    if verdict.law == "inverse":
        return (
            "A cost for each step and a cost for each image describe the times best (s; 95%): T0 + A/b with "
            f"{coefficients(values, verdict.intervals)}. {missing}"
        )
    if verdict.law == "hinge":
        return (
            f"The times bend at {_bend(values['bend'], verdict.intervals.get('bend'))}: each step has its "
            f"cost below, each image above. {missing}"
        )
    if verdict.law == "rise":
        return (
            "A curve that falls and rises again describes the times best, but the times themselves do not show both. "
            f"{missing}"
        )
    return f"The time falls, and the power law describes it best. {missing}"


def _bend(value: float, bounds: Bounds | None) -> str:
    told = interval(bounds.low, bounds.high) if bounds else None
    return f"{number(value)} (95%: {told})" if told else "a place that they do not determine"


def _doubt(verdict: findings.OtherLaw) -> str:
    return {
        "another_law": "another law describes the times better",
        "untested": "there are no replicates, or too few settings to test it",
        "lack_of_fit": "it misses the times by more than the noise between replicates",
        "wide_interval": f"the points do not determine it{_alpha(verdict.alpha_interval)}",
    }[verdict.doubt]


def _alpha(bounds: Bounds | None) -> str:
    """Return the 95% interval of alpha in brackets; nothing where it says nothing."""
    if bounds is None or not interval(bounds.low, bounds.high):
        return ""
    return f" (95% of alpha: {bounds.low:.2f} to {bounds.high:.2f})"


def noise_sentence(noise: findings.Noise) -> str:
    """Return what is known of the noise model, which every law takes to be even."""
    p = f"p = {noise.p:.2g}"
    if noise.way == "even":
        return f"Noise is taken to be the same share of every time; the runs do not contradict it ({p})."
    more, less = ("long", "short") if noise.way == "grows" else ("short", "long")
    return (
        f"The noise is no equal share of every time ({p}): {more} times spread more than {less} ones. The laws take it "
        f"as equal, so they follow {more} times too closely, and {less} ones too loosely."
    )


def level_verdict(level: Level, group: Group) -> str:
    """Return what the runs determine of a level beside the fastest, in a few words; nothing where it is alone."""
    if level.time is None:
        return listed([name.replace("_", " ") for name in level.outcomes]) if level.outcomes else "no run"
    if level.label in group.unfair:
        return {"not_learned": "not shown to have learned as well", "censored": "missed the target"}[
            group.unfair[level.label]
        ]
    several = len(group.levels) > 1
    if several and group.best is None:
        return "cannot say"
    if level.undetermined:
        behind = several and level.label not in group.indistinguishable
        return "slower, no interval" if behind else "cannot say"
    if not several:
        return ""
    if level.label == group.best:
        return "smallest mean" if len(group.indistinguishable) > 1 else "fastest"
    if level.label in group.equivalent:
        return "the same, within the margin"
    return "may be as fast" if level.label in group.indistinguishable else "slower"


def as_text(fit: CurveFit, optimum: Optimum | None, name: str) -> str:
    """Return the verdict, the laws, and the levels of column ``name`` that may be the fastest."""
    runs = f"{fit.observations} rows at {fit.batch_sizes} values of {name}"
    spreads = ", ".join(f"{name} {100 * spread:.2g}%" for name, spread in fit.spreads.items())
    lines = [
        verdict_sentence(fit.verdict),
        "",
        f"{runs}. " + (f"Standard deviations: {spreads}." if spreads else "Nothing was measured twice."),
        "",
        f"Laws, by AICc (undefined: too few rows, or values of {name}, for the law's coefficients):",
        "",
        *_laws(fit),
        "",
        *([noise_sentence(fit.noise), ""] if fit.noise else []),
        *_fastest(optimum, name, isinstance(fit.verdict, EqualTimes)),
    ]
    return "\n".join(lines)


def _laws(fit: CurveFit) -> list[str]:
    """Return the table of laws, aligned."""
    rows = [("law", "AICc", "weight", "lack of fit p", "coefficients (95%)")]
    for law, fitted in fit.models.items():
        told = law != "power" or fitted.reported
        rows.append(
            (
                law_formula(law),
                "undefined" if fitted.aicc is None else f"{fitted.aicc:.1f}",
                "-" if fitted.weight is None else f"{fitted.weight:.2f}",
                "-" if fitted.lack_of_fit_p is None else f"{fitted.lack_of_fit_p:.2g}",
                coefficients(fitted.coefficients, fitted.intervals) if told else "no finding",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return ["  " + "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]]) for row in rows]


def _fastest(optimum: Optimum | None, name: str, equal: bool) -> list[str]:
    if optimum is None:
        why = "As repeated rows have equal times" if equal else f"Without enough repeated rows at a value of {name}"
        return [f"{why}, the data do not show which is the fastest."]
    return [
        f"May be the fastest (95%): {name} {listed(optimum.indistinguishable)}.",
        *(
            f"  {level}: fastest with probability {share:.2f}, {number(optimum.cost[level])} times the smallest mean"
            for level, share in optimum.best_probability.items()
        ),
    ]
