"""The samples of telemetry as a file."""

from pathlib import Path

import numpy as np
import pandas as pd

from study.artifacts.telemetry_columns import COLUMNS
from study.base.errors import StudyError
from study.base.files import whole

MOST_SAMPLES = 3 * 24 * 3600 * 10
"""Those of three days."""
LARGEST_CSV = 200 * MOST_SAMPLES
"""Bytes of them in a sampler's CSV, which a user's code may have written, too."""


def read_samples(csv: Path) -> pd.DataFrame:
    """Return the samples of a sampler's CSV in order of time (columns ``COLUMNS``, float64); empty if it left none.

    A file that cannot be read or has more than ``LARGEST_CSV`` bytes counts as none. The last line of a killed sampler
    may be cut off, and is dropped.
    """
    try:
        if csv.stat().st_size > LARGEST_CSV:
            raise ValueError("no sampler wrote it")
        frame = pd.read_csv(csv, usecols=list(COLUMNS), dtype="float64", on_bad_lines="skip")
    except (OSError, ValueError):
        return pd.DataFrame({column: pd.Series(dtype="float64") for column in COLUMNS})
    if not csv.read_bytes().endswith(b"\n"):
        frame = frame.iloc[:-1]
    return frame[list(COLUMNS)].sort_values("seconds", kind="stable", ignore_index=True)


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write samples (columns ``COLUMNS`` as from :func:`read_samples`) to the Parquet file ``path`` in one piece."""
    with whole(path) as temporary:
        frame.to_parquet(temporary, engine="pyarrow", index=False)


LARGEST_VALUE = 1e18
"""No sample is larger: bytes and bits of a device are far below."""


def read_parquet(path: Path) -> pd.DataFrame:
    """Return the samples (columns ``COLUMNS``, float64) in a file of :func:`write_parquet`.

    Raise :class:`StudyError` if they cannot be read.
    """
    try:
        return from_parquet(path.read_bytes())
    except OSError as error:
        raise StudyError(f"they cannot be read ({type(error).__name__})") from None


def from_parquet(content: bytes) -> pd.DataFrame:
    """Return the samples in the content of a file, as :func:`read_parquet` does."""
    from pyarrow import BufferReader  # with the parser of Parquet a tenth of a second, and few steps read samples
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(BufferReader(content))
        if file.metadata.num_rows > MOST_SAMPLES:
            raise StudyError(f"they cannot be read (there are more than {MOST_SAMPLES})")
        table = file.read(list(COLUMNS), use_threads=False)
        frame = pd.DataFrame({name: table.column(name).to_numpy().astype("float64") for name in COLUMNS})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(f"they cannot be read ({type(error).__name__})") from None
    if (frame.abs().to_numpy() > LARGEST_VALUE).any():
        raise StudyError(f"they cannot be read (a value is above {LARGEST_VALUE:g})")
    return frame


SLOWDOWNS = 0x8 | 0x20 | 0x40 | 0x80
"""Bits of ``gpu_throttle_reasons``: hardware, software thermal, hardware thermal, power brake (nvml.h)."""


def throttled_percent(samples: pd.DataFrame) -> float | None:
    """Return the share of samples in which a slowdown held the GPU's clock, in percent; None if none tells."""
    reasons = samples["gpu_throttle_reasons"].replace([np.inf, -np.inf], np.nan).dropna().astype("int64")
    return None if reasons.empty else float(100 * ((reasons & SLOWDOWNS) != 0).mean())
