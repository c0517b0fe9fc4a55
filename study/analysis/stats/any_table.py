"""What any table of times determines: no plan, no records, no torch."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.stats.curve import CurveFit, fit_curve
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.optimum import Optimum, may_be_fastest, optimum_of
from study.analysis.words import coefficients, law_formula, listed, number
from study.base.errors import StudyError


def read_table(path: Path, x: str, y: str, block: str | None) -> pd.DataFrame:
    """Columns ``x``, ``y`` and ``block`` of a CSV, or one clear error that names the column and the line."""
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
    """The curve and the optimum of a table with columns ``x``, ``y`` and ``block``."""
    x, y, blocks = table["x"].tolist(), table["y"].tolist(), table["block"].tolist()
    fit, optimum = fit_curve(x, y, blocks), optimum_of(fit_log_model(y, [f"{value:g}" for value in x], blocks))
    may = may_be_fastest(optimum, fit.differs_p) if optimum else []
    return fit, optimum.model_copy(update={"indistinguishable": may}) if optimum else None


def as_json(fit: CurveFit, optimum: Optimum | None) -> dict[str, Any]:
    """What is written beside the text; the power law's exponent under names of its own."""
    values = fit.model_dump(mode="json")
    power = values["models"]["power"]
    interval = power["intervals"].get("alpha")
    power["alpha"] = power["coefficients"]["alpha"]
    power["alpha_interval"] = [interval["low"], interval["high"]] if interval else None
    return values | {"optimum": optimum.model_dump(mode="json") if optimum else None}


def as_text(fit: CurveFit, optimum: Optimum | None, name: str) -> str:
    """The verdict, the laws, and the levels that may be the fastest."""
    lines = [fit.verdict, ""]
    runs = f"{fit.observations} rows at {fit.batch_sizes} values of {name}"
    blocks = f", {fit.degrees_of_blocks + 1} blocks" if fit.degrees_of_blocks else ""
    lines += [f"{runs}{blocks}. Laws, by AICc (undefined: too few rows for so many coefficients):", ""]
    rows = [("law", "AICc", "weight", "lack of fit p", "coefficients (95%)")]
    for law, fitted in fit.models.items():
        told = law != "power" or fitted.reported
        rows.append(
            (
                law_formula(law),
                "undefined" if fitted.aicc is None else f"{fitted.aicc:.1f}",
                "-" if fitted.weight is None else f"{fitted.weight:.2f}",
                "-" if fitted.lack_of_fit_p is None else f"{fitted.lack_of_fit_p:.2g}",
                coefficients(fitted.coefficients, fitted.intervals) if told else "no finding",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines += [
        "  " + "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]]) for row in rows
    ]
    lines.append("")
    if optimum is None:
        lines.append(f"One row a value of {name}: which is the fastest cannot be told from chance.")
        return "\n".join(lines)
    lines.append(f"May be the fastest (95%): {name} {listed(optimum.indistinguishable)}.")
    for level, share in optimum.best_probability.items():
        lines.append(
            f"  {level}: fastest with probability {share:.2f}, {number(optimum.cost[level])} times the smallest mean"
        )
    return "\n".join(lines)
