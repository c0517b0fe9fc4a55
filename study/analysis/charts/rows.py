"""The rows of a chart: their names, none of them cut, and the height that each row takes for its name.

Names stand left of the marks, in two lines at most. Where one finds no room there, as on a phone, each stands above
the marks of its row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from study.analysis.charts.svg import LINE, lines_of, paragraph, width_of

GAP = 10.0
"""Pixels between a name and the marks."""
COLUMNS = ((0.4, 1), (0.3, 2), (0.4, 2))
"""Shares of the width that the names may take, each with the lines of one name, the best first."""


@dataclass(frozen=True)
class Column:
    """The names of all rows of a chart."""

    left: float
    """Where the marks begin."""
    room: float
    """Pixels of a line."""
    beside: bool
    """Whether the names stand left of the marks, else above them."""
    kind: str


@dataclass(frozen=True)
class Place:
    """Where a row is: the middle of its marks, the baseline of what follows its name, and the name, drawn."""

    middle: float
    under: float
    name: str


def column(names: Sequence[str], width: int, kind: str = "", least: float = 0.0) -> Column:
    """Return the first column that holds all names; ``least`` is the width of what follows them."""
    words = [word for name in names for word in name.split()]
    for share, most in COLUMNS:
        room = share * width - GAP
        lines = [lines_of(name, room, kind) for name in names]
        if max(map(len, lines)) <= most and all(width_of(word, kind) <= room for word in words):
            longest = max(width_of(line, kind) for one in lines for line in one)
            return Column(max(longest + 4, least) + GAP, room, beside=True, kind=kind)
    return Column(least + GAP, float(width), beside=False, kind=kind)


def placed(names: Sequence[str], held: Column, top: float, row: float, under: float = 0.0) -> tuple[list[Place], float]:
    """Return the places of rows that are ``row`` high, or as high as their names, and where the last one ends.

    ``under`` is the height of a line that follows each name.
    """
    places = []
    for name in names:
        lines = lines_of(name, held.room, held.kind)
        tall = LINE * len(lines)
        if held.beside:
            height = max(row, tall + under + 8)
            middle = top + height / 2
            first = middle - (tall + under) / 2 + 12
            drawn, after = paragraph(lines, held.left - GAP, first, held.kind, "end"), first + tall - 1
        else:
            height = tall + row + 2
            middle = top + tall + row / 2 - 4
            drawn, after = paragraph(lines, 0.0, top + 12, f"over {held.kind}".strip()), middle + 4
        places.append(Place(middle, after, drawn))
        top += height
    return places, top
