"""The samples of telemetry: their columns and their file."""

from pathlib import Path

import pandas as pd

from study.base.files import whole

HOST_COLUMNS = (
    "seconds",  # epoch seconds, as from time.time(), to compare with the run's phases
    "cpu_percent",  # the whole machine, 0 to 100
    "process_cpu_percent",  # the watched process and its children, 100 for each core that they fill
    "process_resident_bytes",  # their resident sets added up: see Tree
    "load_1min",
    "available_memory_bytes",
    "cpu_package_joules",  # all packages since the first sample, if RAPL is readable: see read_rapl_joules
)
GPU_COLUMNS = (
    "gpu_utilisation_percent",  # share of time in which any kernel ran
    "gpu_memory_used_bytes",  # whole device, with what the driver reserves
    "gpu_process_memory_bytes",  # every process that computes on the device
    "gpu_power_watts",
    "gpu_energy_joules",  # since the driver was loaded
    "gpu_sm_clock_mhz",
    "gpu_temperature_celsius",
    "gpu_throttle_reasons",  # NVML's bit mask
)
COLUMNS = HOST_COLUMNS + GPU_COLUMNS


def read_samples(csv: Path) -> pd.DataFrame:
    """Return the samples of a sampler's CSV in order of time (columns ``COLUMNS``, float64); empty if it left none.

    The last line of a killed sampler may be cut off, and is dropped.
    """
    try:
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


def read_parquet(path: Path) -> pd.DataFrame:
    """Return the samples (columns ``COLUMNS``, float64) in a file of :func:`write_parquet`."""
    return pd.read_parquet(path, engine="pyarrow")


SLOWDOWNS = 0x8 | 0x20 | 0x40 | 0x80
"""Bits of ``gpu_throttle_reasons``: hardware, software thermal, hardware thermal, power brake (nvml.h)."""


def throttled_percent(samples: pd.DataFrame) -> float | None:
    """Return the share of samples in which a slowdown held the GPU's clock, in percent; None if none tells."""
    reasons = samples["gpu_throttle_reasons"].dropna().astype("int64")
    return None if reasons.empty else float(100 * ((reasons & SLOWDOWNS) != 0).mean())
