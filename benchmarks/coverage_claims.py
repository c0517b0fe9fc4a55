"""Cells of claims: each kind in studies whose truth lies exactly on the margin, where a word would
be false, and where the claim is right."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.coverage_answers import SIZE, orders, table
from benchmarks.simulated import SECONDS
from benchmarks.trials import Cell, Trial, study_of
from study.analysis.answers.claim import Judge
from study.analysis.answers.compared import Claimed, Quantity
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.mixed_model import Array

SIZES = [16, 32, 64, 128]
MARGIN, EQUAL = 1.1, 1.05
"""What counts as the same: of a number, and of no gain and the fastest."""
SAID, BEYOND = "same here", {"less here", "more here", "not here"}
BASE = {16: 2.0, 32: 1.0, 64: 0.5, 128: 0.25}
"""Times, over :data:`SECONDS`, of which each claim below is right."""
REST = [{"setting": {SIZE: size}, "percent": 100 * 0.25 / BASE[size]} for size in (16, 32, 64)]
ORDER = [{SIZE: size} for size in (128, 64, 32, 16)]
NUMBERS = {
    "about": Claimed(2, 2, 0.1, ratio=True),
    "at least": Claimed(2, None, 0.1, ratio=True),
    "range": Claimed(1.9, 2.1, 0.1, ratio=True),
    "no gain": Claimed(1, 1, 0.05, ratio=True),
    "seconds": Claimed(SECONDS, SECONDS, 0.1),
}
"""What is claimed of 16 over 32, or of the time of 32."""
KINDS: dict[str, dict[str, Any]] = {
    "best": {"best": {SIZE: 128}},
    "rank": {"rank": ORDER},
    "shares": {"shares": REST, "of": {SIZE: 128}},
}
EDGES: dict[str, list[dict[int, float]]] = {
    "about": [{16: 2 / MARGIN}, {16: 2 * MARGIN}],
    "at least": [{16: 2 / MARGIN}],
    "range": [{16: 1.9 / MARGIN}, {16: 2.1 * MARGIN}],
    "no gain": [{16: 1 / EQUAL}, {16: EQUAL}],
    "best": [{64: 0.25 / EQUAL}],
    "rank": [{64: 0.25}],
    "shares": [{64: 0.5 * MARGIN}, {16: 2 / MARGIN, 32: 1 * MARGIN}],
    "seconds": [{32: MARGIN}, {32: 1 / MARGIN}],
}
"""Times at which a kind lies on its margin, in place of the right ones."""


def word(kind: str, logs: Array, rng: np.random.Generator) -> str:
    """Return the word of a claim in a study with these log seconds (blocks, settings). That of one
    number is told by the model alone, which gives the judge's bounds to the last digit."""
    if claimed := NUMBERS.get(kind):
        seconds = (SECONDS * np.exp(logs)).ravel().tolist()
        blocks = np.repeat(np.arange(len(logs)), len(SIZES)).tolist()
        model = fit_log_model(seconds, SIZES * len(logs), blocks)
        pair = (32,) if kind == "seconds" else (16, 32)
        weights = model.weights(*pair)
        return claimed.word(Quantity.of(lambda critical: model.interval(weights, critical), 1))
    claim = KINDS[kind]
    full = {"claim": "A claim", "source": {"title": "A report"}, **claim}
    study = study_of({SIZE: SIZES}, claims=[full])
    order = orders(len(logs), len(SIZES), rng)
    return Judge.of(study, table(study, logs, order)).rows()[0].word


def claims(kind: str, noise: float, blocks: int, rng: np.random.Generator) -> Iterator[Trial]:
    """One study of a right claim, and one of each edge; blocks differ by 5%."""

    def logs(changed: Mapping[int, float]) -> Array:
        times = [changed.get(size, BASE[size]) for size in SIZES]
        shifts = rng.normal(0, 0.05, (blocks, 1))
        found: Array = np.log(times) + shifts + rng.normal(0, noise, (blocks, len(SIZES)))
        return found

    right = {16: 1.0} if kind == "no gain" else {}
    told = word(kind, logs(right), rng)
    yield "right: told", told == SAID
    yield "right, false: another word", told in BEYOND
    for place, edge in enumerate(EDGES[kind]):
        told = word(kind, logs(edge), rng)
        yield f"edge {place}, false: the same", told == SAID
        yield f"edge {place}, false: beyond", told in BEYOND


def cells() -> list[Cell]:
    """Return the cells."""
    every = product(NUMBERS, (0.006, 0.03, 0.1), (3, 5))
    parts = product(KINDS, (0.03,), (3, 5))  # they take long
    must = {"right: told": (0.95, 1.0)}
    return [
        Cell(
            f"claims, {kind}, noise {noise:.1%}, {blocks} blocks",
            partial(claims, kind, noise, blocks),
            must if (kind, noise, blocks) == ("about", 0.03, 5) else {},
        )
        for kind, noise, blocks in (*every, *parts)
    ]
