"""The laws and the optimum of any table of times: no plan, no records, no torch."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.stats.curve import CurveFit, fit_curve
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.optimum import Optimum, may_be_fastest, optimum_of
from study.base.errors import StudyError


def read_table(path: Path, x: str, y: str, block: str | None) -> pd.DataFrame:
    """Return columns ``x``, ``y`` and ``block`` of a CSV file; one clear error names a bad column or line."""
    try:
        frame = pd.read_csv(path)
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise StudyError(f"{path.name}: cannot be read as a table ({str(error).splitlines()[0]})") from None
    frame.index = pd.RangeIndex(2, len(frame) + 2, name="line")
    return checked_table(frame, x, y, block, path.name, "--")


def checked_table(
    frame: pd.DataFrame, x: str, y: str, block: str | None, name: str = "the table", prefix: str = ""
) -> pd.DataFrame:
    """Return the columns ``x``, ``y`` and ``block`` of a table, under these three names.

    Raise :class:`StudyError` for one that is missing, or is not of numbers above 0. ``name`` is the table's in errors,
    and ``prefix`` stands there before the three keys.
    """
    for key, column in (("x", x), ("y", y), ("block", block)):
        if column is not None and column not in frame:
            raise StudyError(f"{prefix}{key}: {name} has no column {column!r}; allowed: {', '.join(map(str, frame))}")
    table = pd.DataFrame({"x": _numbers(frame[x], name), "y": _numbers(frame[y], name)})
    table["block"] = frame[block].astype(str) if block else ""
    if table["x"].nunique() < 2:
        raise StudyError(
            f"{prefix}x: {name} has {len(table)} row(s) with {table['x'].nunique()} value(s) of {x!r}; "
            "a curve needs at least two"
        )
    return table


def _numbers(column: "pd.Series[Any]", name: str) -> "pd.Series[float]":
    """Return a column as positive numbers. Raise :class:`StudyError` that names the first row with another value."""
    values = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = ~np.isfinite(values) | (values <= 0)
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise StudyError(
            f"{name}: {column.index.name or 'row'} {column.index[place]}, column {column.name!r}: "
            f"{str(column.iloc[place])!r} is not allowed: give a number above 0"
        )
    return values


def fit_table(table: pd.DataFrame) -> tuple[CurveFit, Optimum | None]:
    """Return the curve and the optimum of a table with columns ``x``, ``y`` and ``block``."""
    x, y, blocks = table["x"].tolist(), table["y"].tolist(), table["block"].tolist()
    fit, optimum = fit_curve(x, y, blocks), optimum_of(fit_log_model(y, [f"{value:g}" for value in x], blocks))
    may = may_be_fastest(optimum, fit.differs_p) if optimum else []
    return fit, optimum.model_copy(update={"indistinguishable": may}) if optimum else None


def as_json(fit: CurveFit, optimum: Optimum | None) -> dict[str, Any]:
    """Return the JSON values of a fit, with the power law's exponent under names of its own."""
    values = fit.model_dump(mode="json")
    power = values["models"]["power"]
    interval = power["intervals"].get("alpha")
    power["alpha"] = power["coefficients"]["alpha"]
    power["alpha_interval"] = [interval["low"], interval["high"]] if interval else None
    return values | {"optimum": optimum.model_dump(mode="json") if optimum else None}
