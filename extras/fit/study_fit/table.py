"""A table of times, read by pandas and checked: what cannot be used is one error with its row and
column."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.stats.mixed_model import codes
from study.analysis.stats.noise import connected
from study.analysis.stats.optimum import label
from study.analysis.table.tables import LARGEST, PARSER
from study.base.errors import StudyError
from study.base.files import check_plain
from study_fit.mixed import check_unmixed, named

MOST_SIZES = 300
"""Distinct values of x up to which a table is fitted: it takes some seconds, and 3,000 would take
hours."""
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
    """Columns whose levels make no difference: rows that differ in them are repetitions of each
    other."""
    rate: bool = False
    """Whether ``y`` is a rate, of which 1/y is the time."""

    def roles(self) -> dict[str, str]:
        """Return the columns that are used, by the key that names them."""
        roles = {"x": self.x, "y": self.y, "session": self.session, "block": self.block}
        return {key: column for key, column in roles.items() if column is not None}


def read_table(path: Path, options: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table in a file, as :func:`pandas.read_csv` reads it with these ``options``.

    Raise :class:`StudyError` with pandas' own words where it does not.
    """
    if not path.exists():
        raise StudyError(f"{path}: no such file")
    try:
        check_plain(path, LARGEST)
        with warnings.catch_warnings():
            # Rows with more cells than the header, such as those of decimal commas, would lose some
            # with a warning.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, **{"index_col": False, **PARSER, **options})
    # pandas raises nearly anything for a file that is no table, and for its options
    except Exception as error:
        raise StudyError(f"{path}: pandas.read_csv cannot read it: {error}") from None
    if not isinstance(frame, pd.DataFrame):
        raise StudyError(f"{path}: pandas.read_csv with {dict(options)} gives no table")
    return frame


def checked_table(frame: pd.DataFrame, columns: Columns) -> tuple[pd.DataFrame, list[str]]:
    """Return the columns of a table as ``x`` and ``y``, and ``block``, which names runs measured
    together, with notes.

    A block is the repetition ``block`` of the start ``session``, whichever of the two is given. The
    notes are sentences on what was taken for what. Raise :class:`StudyError` for a column that is
    missing or twice there, for a value that cannot be used, for rows of several curves, and for
    blocks that go with x.
    """
    given = columns.roles()
    _check_columns(frame, given)
    for column in columns.pool:
        _check_columns(frame, given | {"pool": column})
    low, high = (1 / MOST, 1 / LEAST) if columns.rate else (LEAST, MOST)
    y = _numbers(frame[columns.y], low, high)
    table = pd.DataFrame({"x": _numbers(frame[columns.x]), "y": 1 / y if columns.rate else y})
    varying = check_unmixed(frame, table["x"], set(given.values()), columns.pool)
    parts = [_names(frame[given[key]]) for key in ("session", "block") if key in given]
    table["block"] = list(zip(*parts, strict=True)) if parts else ""
    if columns.session is not None:
        table["session"] = parts[0]
    _check_sizes(table, columns.x)
    if parts:
        _check_blocks(table, given)
    notes = [f"The times are 1/{columns.y}."] if columns.rate else []
    return table, [*notes, *([named(varying)] if varying else [])]


def _check_columns(frame: pd.DataFrame, given: Mapping[str, str]) -> None:
    """Raise :class:`StudyError` for a column that is missing or twice there, and for one that has
    two uses."""
    for key, column in given.items():
        if column not in frame:
            raise StudyError(
                f"{key}: the table has no column {column!r}; allowed: {', '.join(map(str, frame))}"
            )
        if isinstance(frame[column], pd.DataFrame):
            raise StudyError(
                f"{key}: the table has several columns {column!r}: give each a name of its own"
            )
        before = next(other for other in given if given[other] == column)
        if before != key:
            raise StudyError(f"{key}: {column!r} is {before} already: name another column")


def _numbers(
    column: "pd.Series[Any]", low: float = LEAST, high: float = MOST
) -> "pd.Series[float]":
    """Return a column as numbers in range. Raise :class:`StudyError` that names the first row with
    another value."""
    # an int of 400 digits fits no float
    text = column.astype(str) if column.dtype == object else column
    values = pd.to_numeric(text, errors="coerce").astype(float)
    _refuse(column, ~((values > 0) & (values < np.inf)), "give a number above 0")
    _refuse(
        column,
        (values < low) | (values > high),
        f"give {low:g} to {high:g}, in another unit if need be",
    )
    return values


def _names(column: "pd.Series[Any]") -> "pd.Series[str]":
    """Return a column as names. Raise :class:`StudyError` that names the first row without one."""
    names = column.astype(str).str.strip()
    _refuse(column, column.isna() | (names == ""), "name what the row was measured with")
    return names


def _refuse(column: "pd.Series[Any]", wrong: "pd.Series[bool]", advice: str) -> None:
    """Raise :class:`StudyError` for the first wrong row, if there is one."""
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        value = repr(column.iloc[place])
        shown = (
            value if len(value) <= SHOWN else f"{value[:SHOWN]}... ({len(value) - 2} characters)"
        )
        row = column.index[place]
        raise StudyError(
            f"the table: row {row}, column {column.name!r}: {shown} is not allowed: {advice}"
        )


def _check_sizes(table: pd.DataFrame, x: str) -> None:
    """Raise :class:`StudyError` for too few or too many values of x."""
    sizes = table["x"].nunique()
    told = f"x: the table has {len(table)} row(s) with {sizes} value(s) of {x!r}"
    if sizes < 2:
        raise StudyError(f"{told}; a curve needs at least two")
    if sizes > MOST_SIZES:
        raise StudyError(f"{told}; at most {MOST_SIZES} are allowed: choose some, or round them")


def _check_blocks(table: pd.DataFrame, given: Mapping[str, str]) -> None:
    """Raise :class:`StudyError` for too many blocks, and where they go with x: a difference may be
    the one's or the other's."""
    keys = [key for key in ("session", "block") if key in given]
    told = f"{keys[-1]}: {' and '.join(repr(given[key]) for key in keys)}"
    blocks = table["block"].nunique()
    if blocks > MOST_BLOCKS:
        raise StudyError(f"{told} name {blocks} blocks; at most {MOST_BLOCKS} are allowed")
    sizes = codes(table["x"].tolist())
    sets = connected(sizes, codes(table["block"].tolist()))[sizes]
    if sets.any():
        one, other = (label(table["x"][sets == at].min()) for at in (0, 1))
        raise StudyError(
            f"{told}: blocks go with {given['x']!r}: {one} and {other} share none, nor does a "
            "chain of blocks join them, so their difference may be the blocks'. Leave the blocks "
            "out to fit all rows as one"
        )
