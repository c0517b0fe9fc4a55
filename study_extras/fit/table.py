"""A table of times, checked: what cannot be used is one error with its row and column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.stats.optimum import label
from study.analysis.stats.starts import separate_sets
from study.base.errors import StudyError
from study_extras.fit.mixed import check_unmixed, named
from study_extras.fit.rate import is_rate

MOST_SIZES = 300
"""Distinct values of x up to which a table is fitted: it takes some seconds, and 3,000 would take hours."""
MOST_BLOCKS = 200
LEAST, MOST = 1e-9, 1e12
"""Numbers that a table may hold: seconds and sizes of what can be run, in any usual unit."""
SHOWN = 40
"""Characters of a bad value that an error shows."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are used, and how."""

    x: str = "batch_size"
    y: str = "seconds"
    block: str | None = None
    session: str | None = None
    pool: Sequence[str] = ()
    """Columns whose levels make no difference: rows that differ in them are repetitions of each other."""
    rate: bool | None = None
    """Whether ``y`` is a rate, of which 1/y is the time. None: a column that its name calls a rate is refused."""

    def roles(self) -> dict[str, str]:
        """Return the columns that are used, by the key that names them."""
        roles = {"x": self.x, "y": self.y, "session": self.session, "block": self.block}
        return {key: column for key, column in roles.items() if column is not None}


def checked_table(
    frame: pd.DataFrame, columns: Columns, name: str = "the table", prefix: str = ""
) -> tuple[pd.DataFrame, list[str]]:
    """Return the columns of a table as ``x`` and ``y``, and ``block``, which names runs measured together, with notes.

    A block is the repetition ``block`` of the start ``session``, whichever of the two is given. The notes are sentences
    on what was taken for what. Raise :class:`StudyError` for a column that is missing or twice there, for a value that
    cannot be used, for rows of several curves, and for blocks that go with x. ``name`` is the table's in errors, and
    ``prefix`` stands there before the keys.
    """
    given = columns.roles()
    check_columns(frame, given, name, prefix)
    rate = _is_rate(columns, name, prefix)
    low, high = (1 / MOST, 1 / LEAST) if rate else (LEAST, MOST)
    y = _numbers(frame[columns.y], name, low, high)
    table = pd.DataFrame({"x": _numbers(frame[columns.x], name), "y": 1 / y if rate else y})
    for column in columns.pool:
        check_columns(frame, given | {"pool": column}, name, prefix)
    varying = check_unmixed(frame, table["x"], set(given.values()), columns.pool, name)
    parts = [_names(frame[given[key]], name) for key in ("session", "block") if key in given]
    table["block"] = list(zip(*parts, strict=True)) if parts else ""
    if columns.session is not None:
        table["session"] = parts[0]
    _check_sizes(table, columns.x, name, prefix)
    if parts:
        _check_blocks(table, given, name, prefix)
    notes = [f"The times are 1/{columns.y}."] if rate else []
    return table, [*notes, *([named(varying)] if varying else [])]


def check_columns(frame: pd.DataFrame, given: Mapping[str, str], name: str, prefix: str) -> None:
    """Raise :class:`StudyError` for a column that is missing or twice there, and for one that has two uses."""
    for key, column in given.items():
        if column not in frame:
            raise StudyError(f"{prefix}{key}: {name} has no column {column!r}; allowed: {', '.join(map(str, frame))}")
        if isinstance(frame[column], pd.DataFrame):
            raise StudyError(f"{prefix}{key}: {name} has several columns {column!r}: give each a name of its own")
        before = next(other for other in given if given[other] == column)
        if before != key:
            raise StudyError(f"{prefix}{key}: {column!r} is {prefix}{before} already: name another column")


def _is_rate(columns: Columns, name: str, prefix: str) -> bool:
    """Return whether times are 1/y. Raise :class:`StudyError` for a rate that nobody called one."""
    if columns.rate is None and is_rate(str(columns.y)):
        inverted, kept = ("--rate", "--no-rate") if prefix else ("rate=True", "rate=False")
        raise StudyError(
            f"{prefix}y: {name}: {columns.y!r} is a rate by its name, and the most of a rate is the fastest: "
            f"{inverted} takes 1/{columns.y} as the time, and {kept} says that it is a time"
        )
    return bool(columns.rate)


def _numbers(column: "pd.Series[Any]", name: str, low: float = LEAST, high: float = MOST) -> "pd.Series[float]":
    """Return a column as numbers in range. Raise :class:`StudyError` that names the first row with another value."""
    values = pd.to_numeric(column, errors="coerce").astype(float)
    _refuse(column, ~((values > 0) & (values < np.inf)), name, "give a number above 0")
    _refuse(column, (values < low) | (values > high), name, f"give {low:g} to {high:g}, in another unit if need be")
    return values


def _names(column: "pd.Series[Any]", name: str) -> "pd.Series[str]":
    """Return a column as names. Raise :class:`StudyError` that names the first row without one."""
    names = column.astype(str).str.strip()
    _refuse(column, column.isna() | (names == ""), name, "name what the row was measured with")
    return names


def _refuse(column: "pd.Series[Any]", wrong: "pd.Series[bool]", name: str, advice: str) -> None:
    """Raise :class:`StudyError` for the first wrong row, if there is one."""
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        value = repr(column.iloc[place])
        shown = value if len(value) <= SHOWN else f"{value[:SHOWN]}... ({len(value) - 2} characters)"
        raise StudyError(
            f"{name}: {column.index.name or 'row'} {column.index[place]}, column {column.name!r}: {shown} is not "
            f"allowed: {advice}"
        )


def _check_sizes(table: pd.DataFrame, x: str, name: str, prefix: str) -> None:
    """Raise :class:`StudyError` for too few or too many values of x."""
    sizes = table["x"].nunique()
    told = f"{prefix}x: {name} has {len(table)} row(s) with {sizes} value(s) of {x!r}"
    if sizes < 2:
        raise StudyError(f"{told}; a curve needs at least two")
    if sizes > MOST_SIZES:
        raise StudyError(f"{told}; at most {MOST_SIZES} are allowed: choose some, or round them")


def _check_blocks(table: pd.DataFrame, given: Mapping[str, str], name: str, prefix: str) -> None:
    """Raise :class:`StudyError` for too many blocks, and where they go with x: a difference may be the one's or the
    other's."""
    keys = [key for key in ("session", "block") if key in given]
    told = f"{prefix}{keys[-1]}: {name}: {' and '.join(repr(given[key]) for key in keys)}"
    blocks = table["block"].nunique()
    if blocks > MOST_BLOCKS:
        raise StudyError(f"{told} name {blocks} blocks; at most {MOST_BLOCKS} are allowed")
    sets = separate_sets(table["x"].tolist(), table["block"].tolist())
    if len(sets) > 1:
        one, other = (label(min(sizes)) for sizes in sets[:2])
        raise StudyError(
            f"{told}: blocks go with {given['x']!r}: {one} and {other} share none, nor does a chain of blocks join "
            "them, so their difference may be the blocks'. Leave the blocks out to fit all rows as one"
        )
