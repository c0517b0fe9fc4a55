"""The curve T(b) of a group: every law fitted to its points, and the verdict on what they determine."""

from collections.abc import Hashable, Mapping, Sequence
from math import sqrt

import numpy as np
from pydantic import Field

from study.analysis.stats.findings import (
    Doubt,
    Drifted,
    NoDifference,
    NoLaw,
    OtherLaw,
    PowerLaw,
    Rise,
    TooFewPoints,
    Turn,
    Unreplicated,
    Verdict,
)
from study.analysis.stats.fits import Band, Bounds, Fitted, Points, band_of, fit_laws, points_of, turn_of
from study.analysis.stats.laws import CLOSE, by_name
from study.analysis.stats.log_model import SIGNIFICANCE, fit_log_model, level_test
from study.analysis.stats.machine_change import CHANGE_LIMIT
from study.base.strict import Strict

NARROW = 0.5
"""Width of the interval of alpha from which alpha is no finding: it would hold both alpha = 1 and alpha = 0.5."""


class CurveFit(Strict):
    """The laws that were fitted to the points of a curve, and the verdict on them."""

    observations: int
    batch_sizes: int
    degrees_of_blocks: int = Field(description="Degrees of freedom that the blocks took.")
    differs_p: float | None = Field(description="p of the F test that no batch size differs; null without replicates.")
    models: dict[str, Fitted]
    best: str | None = Field(description="The law with the smallest criterion; null where none has one.")
    points: Points = Field(description="The means that the laws were fitted to, blocks taken out.")
    band: Band | None = Field(description="Of the best law; null without a degree of freedom.")
    turn: Bounds | None = Field(
        description="Batch sizes from which the best law rises again, 95% of the bootstrap; null where it does not."
    )
    verdict: Verdict = Field(description="What the points determine.")

    @property
    def power(self) -> Fitted:
        """The power law, which is the published one."""
        return self.models["power"]


def fit_curve(
    batch_sizes: Sequence[float],
    seconds: Sequence[float],
    blocks: Sequence[Hashable],
    machine_change: float | None = None,
) -> CurveFit:
    """Return every law fitted to the runs, with the verdict on what they determine.

    ``batch_sizes``, ``seconds`` and ``blocks`` have one entry for each run; a table without blocks gives all runs the
    same one. ``machine_change`` is the slowest yardstick over the fastest, where there is one.
    """
    model = fit_log_model(seconds, batch_sizes, blocks)
    points = points_of(batch_sizes, seconds, model)
    models = fit_laws(points)
    known = {name: fit.aicc for name, fit in models.items() if fit.aicc is not None}
    differs = level_test(seconds, batch_sizes, blocks)
    best = min(known, key=lambda name: known[name]) if known else None
    law = by_name(best) if best else None
    turn = turn_of(law, models[law.name], points) if law else None
    spread = max(points.means) / min(points.means)
    blocks_apart = float(np.exp(np.ptp(model.block_effects))) if model.block_columns else 1.0
    moved = max(machine_change or 1.0, blocks_apart)
    drifted = Drifted(machine_change=moved, level_change=spread) if moved >= CHANGE_LIMIT and moved > spread else None
    verdict = judge(models, best, differs, turn, drifted)
    reported = isinstance(verdict, PowerLaw)
    models["power"] = models["power"].model_copy(update={"reported": reported})
    return CurveFit(
        observations=len(seconds),
        batch_sizes=len(points.sizes),
        degrees_of_blocks=model.block_columns,
        differs_p=differs,
        models=models,
        best=best,
        points=points,
        band=band_of(law, models[law.name], points) if law else None,
        turn=turn,
        verdict=verdict,
    )


def judge(
    models: Mapping[str, Fitted],
    best: str | None,
    differs_p: float | None,
    turn: Bounds | None = None,
    drifted: Drifted | None = None,
) -> Verdict:
    """Return what the fitted laws determine; ``best`` is the one with the smallest criterion.

    ``drifted`` is the verdict to give where no batch size differs from another, if the machine changed by more than
    they do.
    """
    if best is None:
        return TooFewPoints()
    beats = _beats_constant(models, best)
    if differs_p is None:
        return Unreplicated(law=best if beats else None)
    if differs_p >= SIGNIFICANCE:
        return drifted or NoDifference()
    if not beats:
        return NoLaw()
    doubt = _doubt(models["power"], models[best])
    if doubt is None:
        return _power_law(models, best)
    return _other_law(models, best, doubt, turn)


def _beats_constant(models: Mapping[str, Fitted], best: str) -> bool:
    """Return whether the best law is another than the constant, by more than criteria may differ by chance."""
    constant, other = models["constant"].aicc, models[best].aicc
    return best != "constant" and (constant is None or (other is not None and other < constant - CLOSE))


def _doubt(power: Fitted, best: Fitted) -> Doubt | None:
    """Return why the power law's coefficients are no findings; None where they are."""
    interval = power.intervals.get("alpha")
    if power.aicc is None or best.aicc is None or power.aicc > best.aicc + CLOSE:
        return "another_law"
    if power.lack_of_fit_p is None:
        return "untested"
    if power.lack_of_fit_p < SIGNIFICANCE:
        return "lack_of_fit"
    if interval is None or interval.low is None or interval.high is None or interval.high - interval.low >= NARROW:
        return "wide_interval"
    return None


def _power_law(models: Mapping[str, Fitted], best: str) -> PowerLaw:
    power, inverse, least = models["power"], models["inverse"].aicc, models[best].aicc
    return PowerLaw(
        c=power.coefficients["c"],
        alpha=power.coefficients["alpha"],
        alpha_interval=power.intervals["alpha"],
        least_seconds=power.coefficients["Tmin"],
        inverse_fits=inverse is not None and least is not None and inverse <= least + CLOSE,
    )


def _other_law(
    models: Mapping[str, Fitted],
    best: str,
    doubt: Doubt,
    turn: Bounds | None,
) -> Turn | Rise | OtherLaw:
    """Return what is found in place of the power law's exponent."""
    values = models[best].coefficients
    if best == "rise" and values["g"] > 0:
        return Turn(batch_size=sqrt(values["A"] / values["g"]), interval=turn) if values["A"] > 0 else Rise()
    return OtherLaw(law=best, coefficients=values, doubt=doubt, alpha_interval=models["power"].intervals.get("alpha"))
