"""Every figure that the published documents print, with its source."""

from pathlib import Path

import pandas as pd

FILE = Path(__file__).parent / "published.csv"
METRICS = {
    "fit_seconds": "fit_time",
    "blog_seconds": "fit_time",
    "train_seconds": "fit_time",
    "epoch_seconds": "epoch_time",
}
"""The published metric of a total; the documents print no other total."""


def read_published() -> pd.DataFrame:
    """Return every published figure, in the order of the file."""
    return pd.read_csv(FILE)


def published_times(study: str, total: str = "fit_seconds") -> pd.DataFrame:
    """Return the published times of a study to set beside ``total``.

    Columns: ``table``, ``hardware``, ``batch_size`` and ``seconds``.
    """
    frame = read_published()
    wanted = (frame["study"] == study) & (frame["metric"] == METRICS.get(total)) & frame["batch_size"].notna()
    rows = frame[wanted].fillna({"hardware": "hardware not printed"})
    return rows.assign(seconds=rows["value"])[["table", "hardware", "batch_size", "seconds"]].reset_index(drop=True)
