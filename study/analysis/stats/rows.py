"""The rows of the table of timings that belong to each group of an analysis."""

import pandas as pd

from study.analysis.stats.analysis import Analysis, Group
from study.config.study import Study


def group_rows(study: Study, frame: pd.DataFrame, analysis: Analysis) -> list[tuple[Group, pd.DataFrame]]:
    """Return each group of the analysis with its rows of the table of timings."""
    if study.curve:
        keys = [key for key in study.compared if key != study.curve.x]
    else:
        keys = [key for key in study.compared if key == "device"]
    labels = frame[keys or ["device"]].map(str).agg(", ".join, axis=1)
    parts = [(group, frame[labels == group.label]) for group in analysis.groups]
    return [(group, rows) for group, rows in parts if len(rows)]
