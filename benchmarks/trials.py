"""Cells of simulated studies: trials by name, their shares with exact intervals, and the file that
keeps them."""

import argparse
import json
import secrets
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from study.analysis.stats.estimate import Estimate
from study.config.study import Study

Trial = tuple[str, bool | float]
"""A name, and whether it is so; or a number, of which the median over the studies counts."""
Allowed = tuple[float, float]
INTERVAL, JOINT, FALSE, TOLD = (0.92, 0.98), (0.92, 1.0), (0.0, 0.05), (0.95, 1.0)
ALLOWED: dict[str, Allowed] = {
    "largest": JOINT,
    "joint": JOINT,
    "held": INTERVAL,
    "width": (0.0, 1.1),
    "called": FALSE,
    "law is named": FALSE,
    "false": FALSE,
    "must be told": TOLD,
    "right at 7": TOLD,
}
"""What is allowed, by a part of the name; the first that fits counts."""


@dataclass(frozen=True)
class Cell:
    """Studies of one kind."""

    name: str
    study: Callable[[np.random.Generator], Iterator[Trial]]
    allowed: Mapping[str, Allowed] = field(default_factory=dict)
    """What it allows by itself, by a part of the name."""
    share: float = 1.0
    """Share of the studies that are made: less where one takes long."""


@dataclass(frozen=True)
class Line:
    """What one cell counted under one name."""

    cell: str
    name: str
    value: float
    low: float
    high: float
    trials: int
    allowed: Allowed | None

    @property
    def fails(self) -> bool:
        """Whether the interval lies wholly outside of what is allowed."""
        return self.allowed is not None and (
            self.high < self.allowed[0] or self.low > self.allowed[1]
        )

    def text(self) -> str:
        """Return it as a line."""
        number = (
            f"{self.value:.2f}"
            if "width" in self.name
            else f"{100 * self.value:.1f}% ({100 * self.low:.1f} to {100 * self.high:.1f})"
        )
        limits = (
            ""
            if self.allowed is None
            else f", allowed {self.allowed[0]:.3g} to {self.allowed[1]:.3g}"
        )
        return (
            f"{'FAILS ' if self.fails else ''}{self.cell} | {self.name}: {number} of "
            f"{self.trials}{limits}"
        )


def holds(interval: Estimate, truth: float) -> bool:
    """Whether an interval holds the planted log value."""
    return (
        interval.low is not None
        and interval.high is not None
        and interval.low <= np.exp(truth) <= interval.high
    )


def run(cell: Cell, studies: int, seed: int) -> list[Line]:
    """Return what the studies of a cell count. Its seed is that of its name: cells can be run in
    any order."""
    rng = np.random.default_rng([seed, zlib.crc32(cell.name.encode())])
    found = defaultdict[str, list[float]](list)
    for _ in range(round(studies * cell.share)):
        for name, value in cell.study(rng):
            found[name].append(float(value))
    return [_line(cell, name, values) for name, values in found.items()]


def _line(cell: Cell, name: str, values: list[float]) -> Line:
    limits = next(
        (limits for part, limits in [*cell.allowed.items(), *ALLOWED.items()] if part in name), None
    )
    if "width" in name:
        middle = float(np.median(values))
        return Line(cell.name, name, middle, middle, middle, len(values), limits)
    bounds = stats.binomtest(int(sum(values)), len(values)).proportion_ci(0.95, "exact")
    return Line(
        cell.name, name, float(np.mean(values)), bounds.low, bounds.high, len(values), limits
    )


def run_all(cells: list[Cell], studies: int, seed: int, path: Path | None) -> None:
    """Run the cells that the file has not yet, print their lines, and add them to it."""
    known = read(path) if path and path.exists() else []
    done = {line.cell for line in known}
    for line in known:
        print(line.text())
    for cell in cells:
        if cell.name in done:
            continue
        for line in run(cell, studies, seed):
            print(line.text(), flush=True)
            if path:
                with path.open("a") as file:
                    file.write(json.dumps(asdict(line)) + "\n")


def read(path: Path) -> list[Line]:
    """Return the lines of a file."""
    rows: list[dict[str, Any]] = [json.loads(row) for row in path.read_text().splitlines()]
    return [Line(**row) for row in rows]


def study_of(factors: Mapping[str, list[Any]], **values: Any) -> Study:
    """Return a study of these factors, which nobody runs."""
    fixed = {
        "title": "Simulated", "question": "Is it right?", "replicates": 2,
        "dataset": {"source": "generated", "images": 20, "image_size": 32},
        "model": {"name": "small_net", "weights": "none"}, "loader": {"kind": "device"},
        "training": {"loop": "torch", "freeze_epochs": 0, "epochs": 1, "batch_size": 4},
    }  # fmt: skip
    return Study.model_validate(fixed | {"factors": {"device": ["cpu"], **factors}} | values)


def main(cells: Sequence[Cell], studies: int, description: str | None) -> None:
    """Print a line for each number of each cell, as the command line asks; ``studies`` a cell by
    default."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=studies)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--file", type=Path, default=None, help="where the lines are kept")
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{options.studies} studies a cell, seed {seed}")
    run_all(
        [cell for cell in cells if options.only in cell.name], options.studies, seed, options.file
    )
