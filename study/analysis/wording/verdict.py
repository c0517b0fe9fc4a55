"""What the points of T(b) determine, in words."""

from functools import singledispatch

from study.analysis.stats import findings
from study.analysis.stats.findings import Verdict
from study.analysis.stats.fits import Bounds
from study.analysis.words import number

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
    once = "Each batch size was run once, so chance cannot be told from shape"
    if verdict.law is None:
        return f"{once}, and no law beats a constant."
    return f"{once}; {LAWS[verdict.law]} follows the points most closely, which replicates would have to confirm."


@verdict_sentence.register
def _drifted(verdict: findings.Drifted) -> str:
    return (
        f"No law beats a constant: the machine drifted by more than the settings differ ({verdict.machine_change:.2f}x "
        f"against {verdict.level_change:.2f}x)."
    )


@verdict_sentence.register
def _no_difference(verdict: findings.NoDifference) -> str:
    return "No law beats a constant: no batch size differs from another by more than the noise."


@verdict_sentence.register
def _no_law(verdict: findings.NoLaw) -> str:
    return "The batch size makes a difference, but no law describes it better than a constant."


@verdict_sentence.register
def _power_law(verdict: findings.PowerLaw) -> str:
    text = (
        f"T(b) = {number(verdict.c)} / b^{verdict.alpha:.2f} + {number(verdict.least_seconds)} s "
        f"({alpha_words(verdict.alpha_interval)})."
    )
    return text + (" T0 + A/b describes the times as well: alpha = 1 is not excluded." if verdict.inverse_fits else "")


@verdict_sentence.register
def _turn(verdict: findings.Turn) -> str:
    bounds = ""
    if interval := verdict.interval:
        high = "unbounded" if interval.high is None else number(interval.high)
        bounds = f" (95%: {number(interval.low or 0)} to {high})"
    return (
        f"The time falls with the batch size and rises again beyond about {number(verdict.batch_size)}{bounds}: no "
        "power law."
    )


@verdict_sentence.register
def _rise(verdict: findings.Rise) -> str:
    return "The time rises with the batch size: no falling power law."


@verdict_sentence.register
def _other_law(verdict: findings.OtherLaw) -> str:
    values = verdict.coefficients
    missing = f"The power law's exponent is no finding: {_doubt(verdict)}."
    if verdict.law == "inverse":
        return (
            f"A cost for each step and a cost for each image describe the times best, T(b) = {number(values['T0'])} + "
            f"{number(values['A'])}/b s. {missing}"
        )
    if verdict.law == "hinge":
        return (
            f"The times bend at a batch size of about {number(values['bend'])}: each step has its cost below, each "
            f"image above. {missing}"
        )
    return f"The time falls with the batch size, and the power law describes it best. {missing}"


def _doubt(verdict: findings.OtherLaw) -> str:
    return {
        "another_law": "another law describes the times better",
        "untested": "there are no replicates, or too few batch sizes to test it",
        "lack_of_fit": "it misses the times by more than the noise between replicates",
        "wide_interval": f"the points do not determine it ({alpha_words(verdict.alpha_interval)})",
    }[verdict.doubt]


def alpha_words(interval: Bounds | None) -> str:
    """Return the confidence set of alpha in words."""
    if interval is None:
        return "no interval: too few points"
    low = f"{interval.low:.2f}" if interval.low is not None else "unbounded"
    high = f"{interval.high:.2f}" if interval.high is not None else "unbounded"
    return "95% of alpha: unbounded" if low == high == "unbounded" else f"95% of alpha: {low} to {high}"
