"""A curve for each level of the columns that group a table, such as a device or a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from study.base.errors import StudyError, printable
from study_extras.fit.laws import Fit, as_json, as_text, fit_columns
from study_extras.fit.table import Columns, check_columns

MOST_GROUPS = 100


@dataclass(frozen=True)
class Group:
    """The rows of one level of each column that groups, and what they determine."""

    levels: dict[str, str]
    fit: Fit | StudyError
    """Or why there is no curve."""

    def __str__(self) -> str:
        return ", ".join(f"{column} {level}" for column, level in self.levels.items())


def fit_each(frame: pd.DataFrame, by: Sequence[str], columns: Columns, name: str, prefix: str) -> list[Group]:
    """Return a fit of each group, in the table's order. Raise :class:`StudyError` if no group has one."""
    by = list(dict.fromkeys(by))
    for column in by:
        check_columns(frame, columns.roles() | {"by": column}, name, prefix)
    keys = pd.Series(list(zip(*(frame[column].astype(str).str.strip() for column in by), strict=True)), frame.index)
    levels = list(dict.fromkeys(keys))
    if len(levels) > MOST_GROUPS:
        raise StudyError(f"{prefix}by: {name}: {' and '.join(by)} make {len(levels)} groups; at most {MOST_GROUPS}")
    groups = []
    for level in levels:
        group = Group(dict(zip(by, level, strict=True)), StudyError("not fitted"))
        rows = frame[(keys == level).to_numpy()].drop(columns=by)
        try:
            groups.append(replace(group, fit=fit_columns(rows, columns, f"{name}, {printable(str(group))}", prefix)))
        except StudyError as error:
            groups.append(replace(group, fit=error))
    errors = [group.fit for group in groups if isinstance(group.fit, StudyError)]
    if len(errors) == len(groups):
        raise errors[0] if errors else StudyError(f"{name}: it has no rows")
    return groups


def text_of_each(groups: Sequence[Group]) -> str:
    """Return the text of each fit under the levels of its group."""
    parts = []
    for group in groups:
        told = f"No curve: {group.fit}" if isinstance(group.fit, StudyError) else as_text(group.fit)
        parts.append(f"{group}\n{'-' * len(str(group))}\n{told}")
    return "\n\n".join(parts)


def json_of_each(groups: Sequence[Group]) -> dict[str, Any]:
    """Return the JSON values of each fit, with the levels of its group."""
    told = [{"error": str(group.fit)} if isinstance(group.fit, StudyError) else as_json(group.fit) for group in groups]
    return {"groups": [{"levels": group.levels} | values for group, values in zip(groups, told, strict=True)]}
