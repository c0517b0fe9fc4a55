"""Levels that blocks of runs connect: only they can be compared within blocks."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

Level = TypeVar("Level", bound=Hashable)


def separate_sets(levels: Sequence[Level], blocks: Sequence[Hashable]) -> list[list[Level]]:
    """Return the levels in connected sets: a block connects its levels. Both have an entry for each run.

    The sets, and the levels in each, are in the order of their first run.
    """
    sets: list[tuple[set[Level], set[Hashable]]] = []
    for level, block in dict.fromkeys(zip(levels, blocks, strict=True)):
        touched = [item for item in sets if level in item[0] or block in item[1]]
        merged = ({level}.union(*(item[0] for item in touched)), {block}.union(*(item[1] for item in touched)))
        sets = [item for item in sets if item not in touched] + [merged]
    order = list(dict.fromkeys(levels))
    found = [[level for level in order if level in members] for members, _ in sets]
    return sorted(found, key=lambda members: order.index(members[0]))
