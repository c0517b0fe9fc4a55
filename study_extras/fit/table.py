"""A table of times, checked: what cannot be used is one error with its row and column."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.stats.gate import separate_sets
from study.analysis.stats.optimum import label
from study.base.errors import StudyError

MOST_SIZES = 300
"""Distinct values of x up to which a table is fitted: it takes some seconds, and 3,000 would take hours."""
MOST_BLOCKS = 200
LEAST, MOST = 1e-9, 1e12
"""Numbers that a table may hold: seconds and sizes of what can be run, in any usual unit."""
SHOWN = 40
"""Characters of a bad value that an error shows."""


def checked_table(
    frame: pd.DataFrame,
    x: str,
    y: str,
    block: str | None = None,
    session: str | None = None,
    name: str = "the table",
    prefix: str = "",
) -> pd.DataFrame:
    """Return columns ``x`` and ``y`` of a table under these names, and ``block``, which names runs measured together.

    A block is the repetition ``block`` of the start ``session``, whichever of the two is given. Raise
    :class:`StudyError` for a column that is missing or twice there, for a value that cannot be used, and for blocks
    that go with x. ``name`` is the table's in errors, and ``prefix`` stands there before the keys.
    """
    columns = {"x": x, "y": y, "session": session, "block": block}
    given = {key: column for key, column in columns.items() if column is not None}
    for key, column in given.items():
        if column not in frame:
            raise StudyError(f"{prefix}{key}: {name} has no column {column!r}; allowed: {', '.join(map(str, frame))}")
        if isinstance(frame[column], pd.DataFrame):
            raise StudyError(f"{prefix}{key}: {name} has several columns {column!r}: give each a name of its own")
    table = pd.DataFrame({"x": _numbers(frame[x], name), "y": _numbers(frame[y], name)})
    parts = [_names(frame[given[key]], name) for key in ("session", "block") if key in given]
    table["block"] = list(zip(*parts, strict=True)) if parts else ""
    if session is not None:
        table["session"] = parts[0]
    _check_sizes(table, x, name, prefix)
    if parts:
        _check_blocks(table, given, name, prefix)
    return table


def _numbers(column: "pd.Series[Any]", name: str) -> "pd.Series[float]":
    """Return a column as numbers in range. Raise :class:`StudyError` that names the first row with another value."""
    values = pd.to_numeric(column, errors="coerce").astype(float)
    _refuse(column, ~((values > 0) & (values < np.inf)), name, "give a number above 0")
    _refuse(column, (values < LEAST) | (values > MOST), name, f"give {LEAST:g} to {MOST:g}, in another unit if need be")
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
