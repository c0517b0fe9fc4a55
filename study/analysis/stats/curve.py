"""What the points of T(b) determine, in a table of laws and in one sentence."""

from collections.abc import Hashable, Mapping, Sequence
from math import sqrt

import numpy as np
from pydantic import Field

from study.analysis.stats.fits import Band, Bounds, Fitted, Points, band_of, fit_laws, points_of, turn_of
from study.analysis.stats.laws import by_name
from study.analysis.stats.log_model import SIGNIFICANCE, fit_log_model, level_test
from study.analysis.stats.machine_change import CHANGE_LIMIT
from study.analysis.words import number
from study.base.strict import Strict

NARROW = 0.5
"""Widest interval of alpha that is printed: a wider one holds both alpha = 1 and alpha = 0.5."""
CLOSE = 2.0
"""Laws within this much of the best criterion are not told from it (Burnham and Anderson 2002)."""


class CurveFit(Strict):
    """What the curve's points determine."""

    observations: int
    batch_sizes: int
    degrees_of_blocks: int = Field(description="Degrees of freedom that the blocks took.")
    differs_p: float | None = Field(description="p of the F test that no batch size differs; null without replicates.")
    models: dict[str, Fitted]
    best: str | None = Field(description="The law with the smallest criterion; null where none has one.")
    points: Points = Field(description="The means that the laws were fitted to, blocks taken out.")
    band: Band | None = Field(description="Of the best law; null without a degree of freedom.")
    turn: Bounds | None = Field(description="Where the best law turns up again, if it does: 95% of the bootstrap.")
    verdict: str = Field(description="In words, what the points determine.")

    @property
    def power(self) -> Fitted:
        """The published law."""
        return self.models["power"]


def fit_curve(
    batch_sizes: Sequence[float],
    seconds: Sequence[float],
    blocks: Sequence[Hashable],
    machine_change: float | None = None,
) -> CurveFit:
    """Fit every law to one entry a run. A bare table without blocks gives every run the same block.

    ``machine_change`` is the slowest yardstick over the fastest, where there is one.
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
    drifted = (moved, spread) if moved >= CHANGE_LIMIT and moved > spread else None
    reported, verdict = judge(models, best, differs, turn, drifted)
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
    drifted: tuple[float, float] | None = None,
) -> tuple[bool, str]:
    """Whether the power law's coefficients are findings, and what the points determine in words.

    ``drifted`` holds how far the machine changed and how far the settings differ, where it changed by more.
    """
    if best is None:
        return False, "The points are too few to compare any law with a constant."
    if differs_p is None:
        return False, "Each batch size was run once, so chance cannot be told from shape" + (
            ", and no law beats a constant."
            if best == "constant" or not _beats_constant(models, best)
            else f"; {LAW_WORDS[best]} follows the points most closely, which replicates would have to confirm."
        )
    if differs_p >= SIGNIFICANCE and drifted:
        return False, (
            f"No law beats a constant: the machine drifted more than the settings differ ({drifted[0]:.2f}x against "
            f"{drifted[1]:.2f}x)."
        )
    if differs_p >= SIGNIFICANCE:
        return False, "No law beats a constant: no batch size differs from another by more than the noise."
    if not _beats_constant(models, best):
        return False, "Batch size makes a difference, but no law describes it better than a constant."
    power = models["power"]
    doubt = _doubt(power, models[best])
    if doubt is None:
        return True, _power_words(models, best)
    return False, _best_words(models[best], best, doubt, turn)


LAW_WORDS = {
    "constant": "a constant",
    "inverse": "T0 + A/b",
    "power": "the power law",
    "rise": "a curve that falls and rises again",
    "hinge": "a curve with a bend",
}


def _beats_constant(models: Mapping[str, Fitted], best: str) -> bool:
    constant, other = models["constant"].aicc, models[best].aicc
    return constant is None or (other is not None and other < constant - CLOSE)


def _doubt(power: Fitted, best: Fitted) -> str | None:
    """Why the power law's coefficients are no findings; None where they are."""
    interval = power.intervals.get("alpha")
    if power.aicc is None or best.aicc is None or power.aicc > best.aicc + CLOSE:
        return "another law describes them better"
    if power.lack_of_fit_p is None:
        return "there are no replicates or too few batch sizes to test it"
    if power.lack_of_fit_p < SIGNIFICANCE:
        return "it misses the times by more than the noise between replicates"
    if interval is None or interval.low is None or interval.high is None or interval.high - interval.low >= NARROW:
        return f"the points do not determine its exponent ({interval_words(interval)})"
    return None


def _power_words(models: Mapping[str, Fitted], best: str) -> str:
    power = models["power"]
    values, interval = power.coefficients, power.intervals["alpha"]
    text = (
        f"T(b) = {number(values['c'])} / b^{values['alpha']:.2f} + {number(values['Tmin'])} s, "
        f"with {interval_words(interval)}."
    )
    inverse, least = models["inverse"].aicc, models[best].aicc
    if inverse is not None and least is not None and inverse <= least + CLOSE:
        text += " T0 + A/b describes the times as well: alpha = 1 is not excluded."
    return text


def _best_words(fit: Fitted, best: str, doubt: str, turn: Bounds | None) -> str:
    """What is said in place of alpha."""
    values = fit.coefficients
    if best == "rise" and values["g"] > 0:
        if values["A"] > 0:
            place = number(sqrt(values["A"] / values["g"]))
            high = "unbounded" if turn is None or turn.high is None else number(turn.high)
            bounds = f" (95%: {number(turn.low or 0)} to {high})" if turn else ""
            return f"The time falls with the batch size and turns up again beyond about {place}{bounds}: no power law."
        return "The time rises with the batch size: no falling power law."
    missing = f"The power law's exponent is no finding: {doubt}."
    if best == "inverse":
        return (
            f"A cost a step and a cost an image describe the times best, T(b) = {number(values['T0'])} + "
            f"{number(values['A'])}/b s. {missing}"
        )
    if best == "hinge":
        bend = number(values["bend"])
        return f"The times bend at a batch size of about {bend}: a cost a step below, a cost an image above. {missing}"
    return f"The time falls with the batch size, and the power law describes it best. {missing}"


def interval_words(interval: Bounds | None) -> str:
    """The confidence set on alpha as words."""
    if interval is None:
        return "no interval: too few points"
    low = f"{interval.low:.2f}" if interval.low is not None else "unbounded"
    high = f"{interval.high:.2f}" if interval.high is not None else "unbounded"
    return "95% of alpha: unbounded" if low == high == "unbounded" else f"95% of alpha: {low} to {high}"
