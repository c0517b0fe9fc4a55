"""How often the answer's interval is right in a study that stops once it is narrow: `replicates: {until: 5%}`.

    nice python -m benchmarks.coverage_until --studies 800

Each study is looked at after each block as the step `measure` does it: with the model, the answer and the interval of
the analysis, until that is within 5%, or 20 blocks are there. The truth is planted. All settings are equal, or the next
is slower than the fastest by 4%, and the others by 10%.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.coverage_answers import SIZE
from benchmarks.simulated import Condition, simulate
from benchmarks.trials import Cell, Trial, holds, main, study_of
from study.analysis.answers.fastest import Fastest
from study.analysis.look import intervals_of, reached_by
from study.analysis.stats.groups import GroupFit
from study.analysis.stats.log_model import fit_log_model
from study.analysis.table.exclusions import far_runs
from study.artifacts.reached import Reached
from study.artifacts.setting import EVERYWHERE, setting_of

SETTINGS, NOISES = (2, 3, 5), (0.03, 0.05, 0.08)
ASKED = {"until": "5%", "most": 20}
FIRST = {2: 9, 3: 5, 5: 3}
"""The block from which the noise has 8 degrees of freedom: looks before that stop no study."""
NO_ROWS = pd.DataFrame()


def until(settings: int, noise: float, apart: bool, rng: np.random.Generator) -> Iterator[Trial]:
    """One study: whether the answer's interval held, that of a ratio that nobody chose, and after how many blocks."""
    names = [str(2**at) for at in range(settings)]
    study = study_of({SIZE: [*map(int, names)]}, replicates=ASKED)
    levels = {name: setting_of(study, {SIZE: int(name)}) for name in names}
    truth = np.log([1, 1.04, 1.1, 1.1, 1.1][:settings]) * apart
    runs = simulate(Condition("", settings=settings, blocks=study.most, noise=noise), truth, rng)
    reached: Reached | None = None
    for blocks in range(FIRST[settings], study.most + 1):
        columns = (column[: blocks * settings].tolist() for column in (runs.seconds, runs.levels, runs.blocks))
        seconds, places, within = columns
        labels = [names[place] for place in places]
        model = fit_log_model(seconds, labels, within, far=far_runs(seconds, labels, within).tolist())
        times = {name: model.mean(name) for name in names}
        best, following, *_ = sorted(times, key=lambda name: times[name].value)
        told: dict[str, Any] = {"group": EVERYWHERE, "level": levels[best], "time": times[best], "machine": False}
        first = Fastest.model_construct(**told)
        intervals = intervals_of([GroupFit(EVERYWHERE, levels, NO_ROWS, NO_ROWS, model, times=times)], first, [first])
        reached = reached_by(study, blocks, intervals)
        if reached and reached.enough:
            break
    stopped = reached is not None and reached.enough
    held = holds(intervals[0], float(truth[names.index(following)] - truth[names.index(best)]))
    yield "the answer's interval held", held
    if stopped:
        yield "the answer's interval held, of those that reached 5%", held
    yield "a ratio held that nobody chose", holds(model.ratio(names[1], names[0]), float(truth[1] - truth[0]))
    yield "5% is reached", stopped
    yield "blocks until that width", float(blocks)


def cells() -> list[Cell]:
    """Return every cell."""
    # Bounds for all settings at once may hold more often.
    allowed = {"reached": (0.0, 1.0), "blocks": (0.0, 20.0), "nobody": (0.93, 0.98), "held": (0.93, 1.0)}
    return [
        Cell(
            f"until 5%, {count} settings, noise {noise:.0%}{', apart' * apart}",
            partial(until, count, noise, apart),
            allowed,
        )
        for count in SETTINGS
        for apart in (False, True)[: count - 1]
        for noise in NOISES
    ]


if __name__ == "__main__":
    main(cells(), 800, __doc__)
