"""How often the statistics are right under the noise that real machines make: planted truths, fresh
seeds.

    python -m benchmarks.coverage --studies 300 --file coverage.jsonl

Every condition of ``benchmarks.simulated`` goes through the rules for outliers and the model, as a
study does; ``benchmarks.coverage_answers`` sends ways, contrasts, switches and time limits through
the table. A line is a share with its exact 95% interval (Clopper and Pearson), one trial a study.
It FAILS where that lies wholly outside what is allowed. A cell that is in the file is not run
again. ``benchmarks.coverage_laws`` does the same for the laws.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from benchmarks import coverage_claims
from benchmarks.coverage_answers import answers
from benchmarks.simulated import Condition, Runs, conditions, of_starts, simulate
from benchmarks.trials import Cell, Trial, holds, main, study_of
from study.analysis.answers.curve import curve_of_model
from study.analysis.stats.estimate import undetermined
from study.analysis.stats.log_model import LogModel, fit_log_model, together
from study.analysis.stats.mixed_model import Array
from study.analysis.stats.optimum import equivalent_to, may_be_fastest, optimum_of
from study.analysis.table.exclusions import MANY, outliers, with_exclusions

MARGIN, DRAWS = 0.05, 20_000
NO_LAW = "flat", "undetermined"
STUDY = study_of(
    {"training.batch_size": [1, 2]}, curve={"x": "training.batch_size", "y": "fit_seconds"}
)
GRID = [(settings, blocks) for blocks, settings in product((3, 5, 2), (2, 3, 5, 10, 30))]


def tell(runs: Runs, condition: Condition) -> tuple[LogModel, list[int]]:
    """Return the model of the runs that count, and the levels whose means are determined."""
    rows = pd.DataFrame(
        {"y": runs.seconds, "level": runs.levels, "block": runs.blocks, "start": runs.starts}
    )
    rows["outlier"] = outliers(*(rows[name].tolist() for name in ("y", "level", "block")))
    # the rules that exclude runs
    if condition.first_slow or (condition.runs >= MANY and rows["outlier"].any()):
        names = {"y": "fit_seconds", "start": "session"}
        fixed = {
            "group": "CPU",
            "device": "cpu",
            "node": None,
            "outcome": "ok",
            "excluded": None,
            "warmed_up": not condition.first_slow,
        }
        marked = with_exclusions(
            STUDY, rows.rename(columns=names).assign(started=rows.index, **fixed)
        )
        rows = rows.assign(outlier=marked["outlier"])[marked["excluded"].isna()]
    model = fit_log_model(
        rows["y"].tolist(),
        rows["level"].tolist(),
        rows["block"].tolist(),
        rows["start"].tolist(),
        outliers=rows["outlier"].tolist(),
    )
    told = []
    for level in model.levels:
        own = rows[rows["level"] == level]
        ratios = (model.ratio(level, other) for other in model.levels if other != level)
        if undetermined(model.mean(level), ratios, own["block"].astype(str)) is None:
            told.append(int(level))
    return model, told


def in_condition(condition: Condition, rng: np.random.Generator) -> Iterator[Trial]:
    """One study of equal levels, one with a faster level, and one of levels at the margin."""
    last, mode = condition.settings - 1, condition.mode > 1
    apart = np.log([1, 1.2, 1.2, 0.9]) if mode else np.where(np.arange(last + 1) == 0, 0, 0.12)
    met = ", both modes met" if mode else ""
    for name, effects in (("equal", np.zeros(last + 1)), ("apart", apart))[mode:]:
        runs = simulate(condition, effects, rng)
        model, told = tell(runs, condition)
        kept, counts = may_be_fastest(model, model.levels), runs.met or not mode
        if {0, last} <= set(told) and counts:
            ratio = model.ratio(last, 0)
            yield f"{name}: ratio held{met}", holds(ratio, runs.truth[last] - runs.truth[0])
            yield from _extremes(model, told, runs.truth) if name == "apart" else ()
        if last in told and counts:
            yield f"{name}: mean held{met}", holds(model.mean(last), runs.truth[last])
        # else they do differ in these starts
        of_any = condition.shift == 0 or condition.starts >= 3
        if name == "equal" and of_any:
            yield "equal: one is called slower", len(kept) < last + 1
            yield from _flat(condition, model, rng)
        elif of_any:
            best = int(runs.truth.argmin())
            yield "apart: the fastest alone is named", kept == [best]
            if counts:
                yield f"apart: the fastest is called slower{met}", best not in kept
    if not (mode or condition.shift or condition.step):
        quiet = replace(condition, noise=0.4 * condition.noise)
        model, _ = tell(simulate(quiet, [0, *[np.log1p(MARGIN)] * last], rng), quiet)
        yield "at the margin: called equivalent", str(last) in equivalent_to(model, 0, MARGIN)


def _extremes(model: LogModel, told: list[int], truth: Array) -> Iterator[Trial]:
    """Whether the largest of the ratios over the first level holds its own."""
    others = [level for level in told if level != 0]
    if len(others) > 1:
        place = max(others, key=lambda other: float(model.effects[model.levels.index(other)]))
        found = model.interval(model.weights(place, 0), together(len(others)))
        yield "apart: largest ratio held", holds(found, truth[place] - truth[0])


def _flat(condition: Condition, model: LogModel, rng: np.random.Generator) -> Iterator[Trial]:
    """Whether a law is named for equal times; in a third of the old conditions' studies, for its
    draws take long."""
    if condition.name.startswith("old") and rng.random() < 1 / 3:
        sizes = [16.0 * 2**level for level in model.levels]
        verdict = curve_of_model(model, sizes, optimum_of(model)).verdict
        yield "equal: a law is named", verdict.kind not in NO_LAW


def clean(settings: int, blocks: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Studies without any disturbance: what they tell, and what they say that they could."""
    condition = Condition("clean", settings=settings, blocks=blocks)

    def told(effects: NDArray[Any]) -> tuple[Runs, LogModel, list[int]]:
        runs = simulate(condition, effects, rng)
        columns = (column.tolist() for column in (runs.seconds, runs.levels, runs.blocks))
        seconds, levels, within = columns
        model = fit_log_model(
            seconds, levels, within, outliers=outliers(seconds, levels, within).tolist()
        )
        return runs, model, may_be_fastest(model, model.levels)

    others, one = np.arange(settings) > 0, np.arange(settings) == settings - 1
    runs, model, kept = told(0.0 * others)
    yield "equal: one is called slower", len(kept) < settings
    if blocks > 1 and model.residual_df > 0:
        ratio = model.ratio(settings - 1, 0)
        yield "ratio held", holds(ratio, 0)
        if ratio.low and ratio.high:
            yield (
                "half width over that of t",
                float(np.log(ratio.high / ratio.low) / 2 / _half_width(runs)),
            )
    _, _, kept = told(20 * condition.noise * one)
    if settings > 2:
        yield "beside a slow one: another is called slower", len(kept) < settings - 1
    for times in (3, 7):
        yield f"right at {times} times the noise", told(times * condition.noise * others)[2] == [0]


def _half_width(runs: Runs) -> float:
    """Return half the width of the t interval of a difference of two levels in whole blocks."""
    table = pd.DataFrame({"y": np.log(runs.seconds), "level": runs.levels, "block": runs.blocks})
    y = table.pivot_table(index="block", columns="level", values="y").to_numpy()
    degrees = (y.shape[0] - 1) * (y.shape[1] - 1)
    left = y - y.mean(0) - y.mean(1, keepdims=True) + y.mean()
    return float(stats.t.ppf(0.975, degrees) * np.sqrt(2 * (left**2).sum() / degrees / len(y)))


@cache
def best_power(settings: int, blocks: int, times: float) -> float:
    """Return how often the best test names a setting that is faster than all others by ``times``
    the noise.

    The better of Tukey's range of all, and of ranges of each level with all of smaller means (as
    Newman and Keuls'), with values that equal settings exceed in 5% of studies. For two settings
    both are the t test.
    """
    rng, degrees = np.random.default_rng(20_261_126), (settings - 1) * (blocks - 1)
    normal = rng.standard_normal((DRAWS, settings)) / np.sqrt(blocks)
    noise = np.sqrt(rng.chisquare(degrees, DRAWS) / degrees / blocks)[:, None]
    ordered = np.sort(normal, 1)
    gaps = (ordered[:, 1:] - ordered[:, :1]) / noise
    ranges = [
        np.quantile(np.ptp(normal[:, :size], 1) / noise[:, 0], 0.95)
        for size in range(2, settings + 1)
    ]
    step = np.array(ranges) * np.quantile((gaps / ranges).max(1), 0.95)
    normal[:, 0] -= times
    apart = np.sort(normal[:, 1:], 1) - normal[:, :1]
    found = (((apart / noise) > needed).all(1).mean() for needed in (ranges[-1], step))
    return float(max(found))


def cells() -> list[Cell]:
    """Return every cell."""
    noisy = [
        Cell(one.name, partial(in_condition, one), share=0.5 if one.runs > 5 else 1.0)
        for one in conditions()
    ]
    started = [Cell(one.name, partial(in_condition, one), share=0.3) for one in of_starts()]
    found = []
    for settings, blocks in GRID:
        least = 0.95 * best_power(settings, blocks, 3) if blocks > 2 else 0.0
        allowed = {"right at 3": (least, 1.0), "right at 7": (0.95 if blocks > 2 else 0.0, 1.0)}
        found.append(
            Cell(
                f"{settings} settings, {blocks} blocks",
                partial(clean, settings, blocks),
                allowed,
                0.4 if settings > 10 else 1.0,
            )
        )
    return [*found, *noisy, *answers(), *started, *coverage_claims.cells()]


if __name__ == "__main__":
    main(cells(), 300, __doc__)
