"""Every figure that the published documents print, with its source."""

from pathlib import Path

import pandas as pd

FILE = Path(__file__).parent / "published.csv"


def read_published() -> pd.DataFrame:
    """Every published figure, in the order of the file."""
    return pd.read_csv(FILE)


def published_times(study: str) -> pd.DataFrame:
    """Published training times of a study: columns ``table``, ``hardware``, ``batch_size``, ``seconds``."""
    frame = read_published()
    rows = frame[(frame["study"] == study) & (frame["metric"] == "fit_time") & frame["batch_size"].notna()]
    return rows.assign(seconds=rows["value"])[["table", "hardware", "batch_size", "seconds"]].reset_index(drop=True)
