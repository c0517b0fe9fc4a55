"""The laws and the optimum of a table of times, as values, as JSON and as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from study.analysis.answers.curve import CurveFit, curve_of_model
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.optimum import Optimum, optimum_of
from study.analysis.words import coefficients, law_formula, listed, number
from study.artifacts.plan import aligned
from study.base.errors import StudyError
from study_fit.table import Columns, checked_table, read_table


@dataclass(frozen=True)
class Fit:
    """What a table of times determines. Printed, it is the text of ``study fit FILE.csv``."""

    x: str
    curve: CurveFit
    """Every law with its coefficients and intervals, those that describe the times alike, and the
    one that is drawn."""
    optimum: Optimum | None
    """The values of ``x`` that may be the fastest; None without replicates."""
    notes: tuple[str, ...] = ()
    """Sentences on what was taken for what: times of a rate, columns that vary and are not used."""

    def __str__(self) -> str:
        return as_text(self)


def fit(
    table: pd.DataFrame | str | PathLike[str],
    x: str = "batch_size",
    y: str = "seconds",
    block: str | None = None,
    session: str | None = None,
    pool: Sequence[str] = (),
    rate: bool = False,
    **read: Any,
) -> Fit:
    """Return the laws and the optimum of any table of times: one row per measurement.

    ``table`` is a frame, or the path of a file that :func:`pandas.read_csv` reads with the options
    ``read``. ``x`` and ``y`` are columns of numbers above 0; ``y`` is in seconds. ``block`` is a
    column that names rows measured together, such as a replicate, and ``session`` one that names
    the start in which a row was measured. With ``rate`` the times are 1/y. Another column whose
    levels have curves of their own, such as a model, is refused unless it is in ``pool``. Raise
    :class:`StudyError` for a column or a value that cannot be used.

    >>> seconds = [9.44, 10.50, 7.18, 10.52, 11.35]
    >>> times = pd.DataFrame({"batch_size": [16, 32, 64, 128, 256], "seconds": seconds})
    >>> fit(times).curve.best
    'constant'
    """
    if isinstance(table, pd.DataFrame):
        if read:
            raise StudyError(f"{next(iter(read))}: an option for a file, and the table is a frame")
        frame = table
    else:
        frame = read_table(Path(table), read)
    return fit_columns(frame, Columns(x, y, block, session, pool, rate))


def fit_columns(frame: pd.DataFrame, columns: Columns) -> Fit:
    """Return what the columns of a table determine."""
    table, notes = checked_table(frame, columns)
    starts = table["session"].tolist() if "session" in table else None
    model = fit_log_model(table["y"].tolist(), table["x"].tolist(), table["block"].tolist(), starts)
    optimum = optimum_of(model)
    curve = curve_of_model(model, model.levels, optimum)
    return Fit(columns.x, curve, None if curve.differs_p is None else optimum, tuple(notes))


def as_json(fit: Fit) -> dict[str, Any]:
    """Return the JSON values of a fit, with the power law's exponent under names of its own."""
    values = fit.curve.model_dump(mode="json")
    power = values["models"]["power"]
    interval = power["intervals"].get("alpha")
    power["alpha"] = power["coefficients"]["alpha"]
    power["alpha_interval"] = [interval["low"], interval["high"]] if interval else None
    return values | {
        "optimum": fit.optimum.model_dump(mode="json") if fit.optimum else None,
        "notes": list(fit.notes),
    }


def as_text(fit: Fit) -> str:
    """Return the verdict, the laws, and the levels of x that may be the fastest."""
    curve, name = fit.curve, fit.x
    runs = f"{curve.observations} rows at {curve.batch_sizes} values of {name}"
    spreads = ", ".join(f"{name} {100 * spread:.2g}%" for name, spread in curve.spreads.items())
    lines = [
        curve.text(),
        "",
        f"{runs}. "
        + (f"Standard deviations: {spreads}." if spreads else "Nothing was measured twice."),
        *fit.notes,
        "",
        f"Laws, by AICc (undefined: too few rows, or values of {name}, for the law's "
        "coefficients):",
        "",
        *_laws(curve),
        "",
        *_fastest(fit.optimum, name, curve.verdict.reason == "equal_times"),
    ]
    return "\n".join(lines)


def _laws(fit: CurveFit) -> list[str]:
    """Return the table of laws, aligned."""
    rows = [("law", "AICc", "lack of fit p", "coefficients (95%)")]
    for law, fitted in fit.models.items():
        finding = " (no finding)" if fitted.reported is False else ""
        rows.append(
            (
                law_formula(law),
                "undefined" if fitted.aicc is None else f"{fitted.aicc:.1f}",
                "-" if fitted.lack_of_fit_p is None else f"{fitted.lack_of_fit_p:.2g}",
                coefficients(fitted.coefficients, fitted.intervals) + finding,
            )
        )
    return [f"  {line}" for line in aligned(rows)]


def _fastest(optimum: Optimum | None, name: str, equal: bool) -> list[str]:
    if optimum is None:
        why = (
            "As repeated rows have equal times"
            if equal
            else f"Without enough repeated rows at a value of {name}"
        )
        return [f"{why}, the data do not show which is the fastest."]
    return [
        f"May be the fastest (95%): {name} {listed(optimum.indistinguishable)}.",
        *(
            f"  {level}: {number(cost)} times the smallest mean"
            for level, cost in optimum.cost.items()
        ),
    ]
