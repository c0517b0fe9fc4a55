"""Columns that vary and are not used: those that would mix several curves are refused, and the
others are named."""

from collections.abc import Collection, Sequence

import pandas as pd

from study.base.errors import StudyError, printable

MOST_NAMED = 8
LARGE = 1e6
"""A number from here on was measured, as bytes are: no level is so large."""
COUNTED = ("warm_up_steps",)
"""Whole numbers that each run of ``timings.csv`` counts anew, so that no curve belongs to one."""


def check_unmixed(
    frame: pd.DataFrame, x: "pd.Series[float]", used: Collection[str], pool: Collection[str]
) -> list[str]:
    """Return the columns that vary, are not ``used`` and do no visible harm. ``x`` holds the
    numbers of that column.

    Raise :class:`StudyError` for those whose levels have a curve each (a model, a device), unless
    ``pool`` names them.
    """
    varying, mixed = [], {}
    for place, column in enumerate(map(str, frame.columns)):
        values = frame.iloc[:, place]
        levels = values.astype(object).where(values.notna(), "").astype(str).str.strip()
        if column in used or column in COUNTED or levels.nunique() < 2:
            continue
        varying.append(column or f"column {place + 1}")
        if column not in pool and _splits(levels, x):
            mixed[column] = list(dict.fromkeys(levels))
    if mixed:
        first, *others = mixed
        some = ", ".join(printable(level)[:20] or "nothing" for level in mixed[first][:3])
        more = f"; so do {', '.join(map(repr, others[:MOST_NAMED]))}" if others else ""
        raise StudyError(
            f"the table: column {first!r} varies ({some}{', ...' * (len(mixed[first]) > 3)}) and "
            "is not used, and one curve would mix its levels: fit each alone, or give it as block "
            f"(measured together) or in pool (no difference between them){more}"
        )
    return varying


def _splits(levels: "pd.Series[str]", x: "pd.Series[float]") -> bool:
    """Return whether the levels of a column have curves of their own.

    Text does if one of its levels was measured at two values of x. Numbers may have been measured,
    as an accuracy was: they do if each level was measured at two values of x, and a fraction only
    if it was at the same ones.
    """
    sizes = [frozenset(part) for _, part in x.groupby(levels)]
    several = [len(one) > 1 for one in sizes]
    numbers = pd.to_numeric(levels[levels != ""], errors="coerce")
    if numbers.isna().any():
        return any(several)
    return all(several) and (
        bool((numbers % 1 == 0).all() and numbers.max() < LARGE) or len(set(sizes)) == 1
    )


def named(columns: Sequence[str]) -> str:
    """Return a sentence about columns that vary and are not used."""
    some = ", ".join(columns[:MOST_NAMED])
    more = f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
    return f"Not used, though they vary: {some}{more}."
