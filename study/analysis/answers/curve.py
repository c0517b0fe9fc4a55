"""The curve T(b) of a group: every law fitted to its points, and the verdict on what they
determine."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from study.analysis.stats.laws import RISING_ROOT, Band, Bounds, Fitted, LogMeans, by_name, fit_laws
from study.analysis.stats.log_model import DIFFERENCE, SIGNIFICANCE, LogModel
from study.analysis.stats.optimum import Optimum, has_noise, label, level_test, over_starts, telling
from study.analysis.words import agreeing, coefficients, interval, listed
from study.base.strict import Strict
from study.config.study import MARGIN

VerdictKind = Literal["power_law", "falls", "turns", "flat", "undetermined"]
TEXTS: dict[VerdictKind, str] = {
    "power_law": "Power law (s; 95%): Tmin + c/b^alpha with",
    "falls": "The time falls. The exponent alpha is no finding:",
    "turns": "The time rises somewhere by more than the noise: no falling power law.",
    "flat": "No law is shown to describe the times better than a constant.",
    "undetermined": "No law can be weighed against a constant:",
}
VerdictReason = Literal[
    "another_law", "lack_of_fit", "wide_interval", "points", "replicates", "equal_times"
]
REASONS: dict[VerdictReason, str] = {
    "another_law": "a law that rises again fits as well or better",
    "lack_of_fit": "the power law misses the times by more than the noise",
    "wide_interval": "the points do not determine it",
    "points": "the points are too few",
    "replicates": "without replicates the noise is not known",
    "equal_times": "repeated runs took equal times, so that their noise is not known",
}


class Verdict(Strict):
    """What the points of T(b) determine.

    `power_law`: the coefficients of T(b) = Tmin + c / b^alpha are findings. `falls`: the time
    falls, and the exponent is none. `turns`: some setting is slower than a smaller one beyond the
    noise. `flat`: no difference shows, or none that a law describes. `undetermined`: something is
    missing to tell.
    """

    kind: VerdictKind
    reason: VerdictReason | None = None
    """Why the exponent is no finding, or what is missing."""
    low: float | None = None
    """The level below all that may be the fastest, where it falls to them."""
    high: float | None = None
    """The level above all that may be the fastest, where it then rises."""


NARROW = 0.5
"""Width of the interval of alpha from which alpha is no finding: it would hold both alpha = 1 and
alpha = 0.5."""


DRAWN: dict[VerdictKind, str] = {
    "power_law": "power",
    "falls": "power",
    "turns": "rise",
    "flat": "constant",
}
"""The law that is drawn for each verdict."""


class Term(NamedTuple):
    """One part of a law, such as A/b."""

    part: str
    """What it does where the size grows: stays, shrinks or grows."""
    coefficient: str
    value: float
    bounds: Bounds
    seconds: list[float]
    """The part at each size that was asked for."""


class CurveFit(Strict):
    """The laws that were fitted to the points of a curve, and the verdict on them."""

    observations: int
    batch_sizes: int
    spreads: dict[str, float]
    """Relative standard deviation of the noise, between blocks and between starts, where each can
    be told; empty without replicates."""
    differs_p: float | None
    """p of the F test that no batch size differs; null without replicates."""
    models: dict[str, Fitted]
    alike: list[str]
    """The laws whose criterion is within 2 of the smallest; and the constant where no difference is
    shown, whatever its criterion."""
    best: str | None
    """The law that is alone in ``alike``; else null."""
    verdict: Verdict
    line: str | None = None
    """The law that is drawn. Null where the verdict names none, or where it misses a mean by more
    than the study's margin and the means by more than the noise."""
    band: list[Band] = []
    """That law at 61 sizes, evenly spaced in log from the smallest to the largest."""

    @property
    def power(self) -> Fitted:
        """The power law, which is the published one."""
        return self.models["power"]

    def text(self) -> str:
        """Return the verdict in words."""
        verdict, told = self.verdict, TEXTS[self.verdict.kind]
        if verdict.reason:
            return f"{told} {self._like() or REASONS[verdict.reason]}."
        if verdict.low is not None and verdict.high is not None:
            ends = f"{label(verdict.low)} and {label(verdict.high)}"
            return f"{told} Its shortest lies between {ends} (95%)."
        if verdict.kind != "power_law":
            return told
        told = f"{told} {coefficients(self.power.coefficients, self.power.intervals)}."
        if self.power.intervals["alpha"].hold(1.0):
            told += " It does not exclude alpha = 1, a cost of each step and one of each image."
        return told

    def _like(self) -> str:
        """Return the exponents that describe the times as well, where an interval is too wide."""
        if self.verdict.reason != "wide_interval":
            return ""
        alpha = self.power.intervals["alpha"]
        laws = [by_name(law) for law in self.alike if law in ("step", "root")]
        named = [f"alpha = {law.exponent:g}" for law in laws if alpha.hold(law.exponent)]
        if not named:
            return ""
        found = interval(alpha.low, alpha.high)
        verb = agreeing(len(named), "describes", "describe")
        return f"{listed(named)} {verb} it as well{f' (95%: {found})' if found else ''}"

    def terms(self, sizes: Sequence[float]) -> list[Term]:
        """Return the parts of the law that is drawn, with their seconds at ``sizes``; none where
        none is drawn."""
        if self.line is None:
            return []
        law = by_name(self.line)
        fit = self.models[self.line]
        seconds = law.parts(fit.coefficients, sizes)
        return [
            Term(part, name, fit.coefficients[name], fit.intervals[name], seconds[part].tolist())
            for part, name in law.names.items()
            if part in seconds
        ]


def curve_of_model(
    model: LogModel, sizes: Sequence[float | None], optimum: Optimum | None, margin: float = MARGIN
) -> CurveFit:
    """Return every law fitted to the means of a model.

    ``sizes`` (m,) are those of its levels, None for one that is left out (of ``optimum``, too).
    ``margin`` is the study's margin of equivalence.
    """
    kept = [place for place, size in enumerate(sizes) if size is not None]
    differs_p = level_test(model, [model.levels[place] for place in kept])
    means, replicated = means_of(model, sizes), model.residual_df > 0
    models = fit_laws(means)
    # that a constant describes the times, and that no size differs, is one question
    models["constant"] = models["constant"].model_copy(update={"lack_of_fit_p": differs_p})
    # the laws between which the times do not choose
    known = {name: fit for name, fit in models.items() if fit.aicc is not None}
    alike = [name for name in known if not any(fit.beats(known[name]) for fit in known.values())]
    if (differs_p or 0.0) >= DIFFERENCE and "constant" not in alike:
        alike.insert(0, "constant")
    if replicated and not has_noise(model):
        verdict = Verdict(kind="undetermined", reason="equal_times")
    else:
        among = optimum.indistinguishable if optimum else []
        tied = [sizes[place] for place in kept if label(model.levels[place]) in among]
        verdict = _verdict(models, means, alike, differs_p, tied)
    models["power"] = models["power"].model_copy(update={"reported": verdict.kind == "power_law"})
    line = DRAWN.get(verdict.kind)
    if line == "rise" and (line not in alike or _turns_again(means)):
        line = None
    # what has no p has a coefficient for each size, and should miss nothing
    if line and (models[line].lack_of_fit_p or 0.0) < SIGNIFICANCE:
        line = None if max(map(abs, models[line].misses.values())) > margin else line
    return CurveFit(
        observations=int(sum(model.counts[place] for place in kept)),
        batch_sizes=len(means.sizes),
        spreads=model.spreads if replicated else {},
        differs_p=differs_p,
        models=models,
        alike=alike,
        best=alike[0] if len(alike) == 1 else None,
        verdict=verdict,
        line=line,
        band=models[line].band if line else [],
    )


def means_of(model: LogModel, sizes: Sequence[float | None]) -> LogMeans:
    """Return the mean log seconds at each size, the smallest first, with the noise of the test that
    no size differs.

    ``sizes`` (m,) are those of the model's levels, None for one that is left out. Where starts are
    the unit, what a level differs by from the others has their spread; the average level has the
    model's.
    """
    kept = sorted((size, place) for place, size in enumerate(sizes) if size is not None)
    order = np.array([place for _, place in kept])
    count = len(kept)
    levels = [model.levels[place] for place in order]
    model, beside = telling(model, levels), over_starts(model, levels)
    covariance = model.covariance[np.ix_(order, order)]
    degrees = model.pair_degrees
    if beside:
        variance, degrees = beside
        covariance = variance * (np.eye(count) - 1 / count) + covariance.mean()
    if not has_noise(model):
        covariance = np.eye(count)
        degrees = 0.0
    return LogMeans([size for size, _ in kept], model.effects[order], covariance, degrees)


def _turns_again(means: LogMeans) -> bool:
    """Return whether the time rises before its smallest mean, or falls after it, beyond the noise.

    These are one-sided t tests at 5% of all pairs of sizes at once (Bonferroni's rule).
    """
    least = means.logs.argmin()
    own = np.diag(means.covariance)
    one, other = np.triu_indices(len(own), 1)
    critical = -special.stdtrit(means.degrees, SIGNIFICANCE / len(one))
    change = means.logs[other] - means.logs[one]
    error = own[one] + own[other] - 2 * means.covariance[one, other]
    wrong = np.where(other <= least, change, np.where(one >= least, -change, 0.0))
    return bool(((wrong > critical * np.sqrt(np.maximum(error, 0.0))) & (error > 0)).any())


def _verdict(
    models: Mapping[str, Fitted],
    means: LogMeans,
    alike: Collection[str],
    differs_p: float | None,
    tied: Collection[float | None],
) -> Verdict:
    """Return what the laws that were fitted to ``means`` determine; between those that are
    ``alike`` the times do not choose.

    ``differs_p`` is p of the test that no size differs from another, None without replicates.
    ``tied`` holds the fastest size with 95% probability. Where the time falls and rises again once,
    the minimum of the curve lies between the neighbours of the fastest size.
    """
    sizes = means.sizes
    places = [place for place, size in enumerate(sizes) if size in tied]
    if places and differs_p is not None and differs_p < DIFFERENCE:
        # the levels turn, whatever law describes them
        before, after = sizes[: places[0]], sizes[places[-1] + 1 :]
        if _turns_again(means) or (after and not before):
            return Verdict(kind="turns")
        if after:
            return Verdict(kind="turns", low=before[-1], high=after[0])
    if models["step"].aicc is None:
        return Verdict(kind="undetermined", reason="points")
    if differs_p is None:
        return Verdict(kind="undetermined", reason="replicates")
    if "constant" in alike:
        return Verdict(kind="flat")
    doubt = _doubt(models, means)
    return Verdict(kind="falls" if doubt else "power_law", reason=doubt)


def _doubt(models: Mapping[str, Fitted], means: LogMeans) -> VerdictReason | None:
    """Return why the power law's coefficients are no findings; None where they are.

    Laws that fall are power laws, so that only one that rises can be another: a root that is shown
    to rise shuts them out, unless it fits worse.
    """
    power = models["power"]
    alpha = power.intervals["alpha"]
    if power.aicc is None or power.lack_of_fit_p is None:
        return "points"
    if models["rise"].beats(power):
        return "another_law"
    if power.lack_of_fit_p < SIGNIFICANCE:
        return "lack_of_fit"
    if (alpha.high or np.inf) - (alpha.low or -np.inf) >= NARROW:
        return "wide_interval"
    rival = fit_laws(means, [RISING_ROOT])["rising_root"]
    return "another_law" if rival.intervals["g"].low and not power.beats(rival) else None
