"""How often the answer's interval is right in a study that stops once it is narrow: `replicates: {until: 5%}`.

    nice python -m benchmarks.coverage_until --studies 800

Each study is looked at after each block as the step `measure` does it: with the model, the answer and the interval of
the analysis, until that is within 5%, or 20 blocks are there. The truth is planted. All settings are equal, or the next
is slower than the fastest by 4%, and the others by 10%.
"""

import argparse
import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.coverage_answers import SIZE, orders, table
from benchmarks.trials import Cell, Trial, holds, run_all, study_of
from study.analysis.answers.fastest import Fastest
from study.analysis.look import intervals_of, reached_by
from study.analysis.stats.groups import groups_of
from study.analysis.table.exclusions import with_exclusions
from study.artifacts.reached import Reached

BLOCK_NOISE = 0.03
SETTINGS, NOISES = (2, 3, 5), (0.03, 0.05, 0.08)
ASKED = {"until": "5%", "most": 20}
FIRST = {2: 9, 3: 5, 5: 3}
"""The block from which the noise has 8 degrees of freedom: looks before that stop no study."""


def until(settings: int, noise: float, apart: bool, rng: np.random.Generator) -> Iterator[Trial]:
    """One study: whether the answer's interval held, that of a ratio that nobody chose, and after how many blocks."""
    sizes = [2**at for at in range(settings)]
    study = study_of({SIZE: sizes}, replicates=ASKED)
    truth = np.log([1, 1.04, 1.1, 1.1, 1.1][:settings]) * apart
    logs = truth + rng.normal(0, noise, (study.most, settings)) + rng.normal(0, BLOCK_NOISE, (study.most, 1))
    whole = table(study, logs, orders(study.most, settings, rng)).assign(excluded=None)
    reached: Reached | None = None
    for blocks in range(FIRST[settings], study.most + 1):
        (group,) = groups_of(study, with_exclusions(study, whole[whole["block"] <= blocks]))
        times = {int(name): time for name, time in group.times.items()}
        best, following, *_ = sorted(times, key=lambda size: times[size].value)
        told: dict[str, Any] = {
            "group": group.setting,
            "level": group.levels[str(best)],
            "time": times[best],
            "machine": False,
        }
        first = Fastest.model_construct(**told)
        intervals = intervals_of([group], first, [first])
        reached = reached_by(study, blocks, intervals)
        if reached and reached.enough:
            break
    assert group.model is not None
    stopped = reached is not None and reached.enough
    held = holds(intervals[0], float(truth[sizes.index(following)] - truth[sizes.index(best)]))
    yield "the answer's interval held", held
    if stopped:
        yield "the answer's interval held, of those that reached 5%", held
    yield "a ratio held that nobody chose", holds(group.model.ratio(str(sizes[1]), "1"), float(truth[1] - truth[0]))
    yield "5% is reached", stopped
    yield "blocks until that width", float(blocks)


def cells() -> list[Cell]:
    """Return every cell."""
    allowed = {"held": (0.93, 0.98), "blocks": (0.0, 20.0)}
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


def main() -> None:
    """Print a line for each number of each cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=800)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--file", type=Path, default=None, help="where the lines are kept")
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{options.studies} studies a cell, seed {seed}")
    run_all([cell for cell in cells() if options.only in cell.name], options.studies, seed, options.file)


if __name__ == "__main__":
    main()
