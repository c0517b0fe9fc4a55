"""Telemetry of one run on the host side: it turns samples into a table and a summary.

A GPU's power reading is unreliable. On recent cards nvidia-smi and NVML see the power only during about a quarter of
the time (https://arxiv.org/abs/2312.02741), so its integral may be far off, most of all for short loads. The energy
counter covers the whole time, but ticks about every 100 ms. Hence the counter is used if there is one, the method is
always named, and a window under 2 s gets no number.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from study.artifacts.telemetry import COLUMNS
from study.base.strict import Strict

Array = NDArray[np.float64]
SHORTEST_WINDOW_SECONDS = 2.0
FEWEST_SAMPLES = 10
LONGEST_HOLE_SECONDS = 1.0
IDLE = 0x1
THROTTLE_WORDS = {
    0x2: "application clocks setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake slowdown",
    0x100: "display clock setting",
    0x200: "board limit",
    0x400: "reliability",
}
"""NVML's names of the causes of a low clock (nvml.h, nvmlClocksEventReasons). Idleness is not one of them."""


class Energy(Strict):
    """Energy of one window in joules, with its method, or the reason for its absence."""

    joules: float | None = None
    method: Literal["counter", "power", "rapl"] | None = None
    """`counter`: NVML's energy counter. `power`: NVML's power readings, integrated. `rapl`: the processor's energy
    counter."""
    refused: str | None = Field(None, description="Reason for the absence of a number, as a sentence.")


class TelemetrySummary(Strict):
    """Summary of the telemetry within one window; null if no sample has the value."""

    samples: int
    window_seconds: float
    mean_cpu_percent: float | None = Field(description="Mean load of the whole machine, 0 to 100.")
    mean_process_cpu_percent: float | None
    """Mean load of the run and its workers, 100 for each core."""
    peak_process_resident_bytes: int | None
    """Peak of the resident sets of the run and its workers, summed: pages that they share count in each."""
    least_available_memory_bytes: int | None
    mean_gpu_utilisation_percent: float | None
    peak_gpu_memory_used_bytes: int | None = Field(description="Peak memory in use on the whole device.")
    peak_gpu_process_memory_bytes: int | None
    """Peak memory of all processes that compute on the device."""
    mean_gpu_sm_clock_mhz: float | None
    max_gpu_temperature_celsius: float | None
    throttle_reasons: list[str] | None
    """Causes of a low clock at any time in the window, in NVML's words."""
    gpu_energy: Energy
    cpu_energy: Energy = Field(description="Energy of the processor packages, without their memory.")


def summarise(frame: pd.DataFrame, start: float, end: float) -> TelemetrySummary:
    """Return the summary of samples (columns ``COLUMNS``) from ``start`` to ``end``, both in epoch seconds."""
    # Arrays: a study has thousands of these tables, and pandas takes longer to choose a column than to add it up.
    whole = dict(zip(COLUMNS, frame[list(COLUMNS)].to_numpy(float).T, strict=True))
    inside = (whole["seconds"] >= start) & (whole["seconds"] <= end)
    window = {name: values[inside] for name, values in whole.items()}
    return TelemetrySummary(
        samples=len(window["seconds"]),
        window_seconds=end - start,
        mean_cpu_percent=_mean(window["cpu_percent"]),
        mean_process_cpu_percent=_mean(window["process_cpu_percent"]),
        peak_process_resident_bytes=_bytes(_most(window["process_resident_bytes"])),
        least_available_memory_bytes=_bytes(_least(window["available_memory_bytes"])),
        mean_gpu_utilisation_percent=_mean(window["gpu_utilisation_percent"]),
        peak_gpu_memory_used_bytes=_bytes(_most(window["gpu_memory_used_bytes"])),
        peak_gpu_process_memory_bytes=_bytes(_most(window["gpu_process_memory_bytes"])),
        mean_gpu_sm_clock_mhz=_mean(window["gpu_sm_clock_mhz"]),
        max_gpu_temperature_celsius=_most(window["gpu_temperature_celsius"]),
        throttle_reasons=throttle_words(_known(window["gpu_throttle_reasons"]).astype("int64").tolist()),
        gpu_energy=_gpu_energy(whole, start, end),
        cpu_energy=_cpu_energy(whole, start, end),
    )


def throttle_words(masks: Iterable[int]) -> list[str] | None:
    """Return the union of NVML's bit masks in words, without idleness, or None if there is no mask."""
    union, any_mask = 0, False
    for mask in masks:
        union, any_mask = union | int(mask), True
    if not any_mask:
        return None
    bits = [1 << place for place in range(union.bit_length()) if union >> place & 1]
    return [THROTTLE_WORDS.get(bit, f"reason {bit:#x}") for bit in bits if bit != IDLE]


def _gpu_energy(samples: Mapping[str, Array], start: float, end: float) -> Energy:
    """Return the energy of the GPUs from samples (keys ``COLUMNS``), by their counter or else by their power."""
    power, counted = _read(samples, "gpu_power_watts"), _read(samples, "gpu_energy_joules")
    if len(counted[0]):
        found = _by_counter(*counted, start, end, "counter")
        # A counter that stands still is broken, as on some virtual GPUs; the power may still be known.
        if found.refused or found.joules or not len(power[0]):
            return found
    if not len(power[0]):
        return Energy(refused="The device reports neither its energy nor its power.")
    return _by_power(*power, start, end)


def _cpu_energy(samples: Mapping[str, Array], start: float, end: float) -> Energy:
    """Return the energy of the processor packages from samples (keys ``COLUMNS``)."""
    counted = _read(samples, "cpu_package_joules")
    if not len(counted[0]):
        return Energy(refused="The processor's energy counter is not readable here.")
    return _by_counter(*counted, start, end, "rapl")


def _read(samples: Mapping[str, Array], name: str) -> tuple[Array, Array]:
    """Return the times and the values of the samples that have a value."""
    known = ~(np.isnan(samples["seconds"]) | np.isnan(samples[name]))
    return samples["seconds"][known], samples[name][known]


def _by_counter(seconds: Array, joules: Array, start: float, end: float, method: Literal["counter", "rapl"]) -> Energy:
    """Return the energy from a counter's readings, interpolated at both ends."""
    inside = seconds[(seconds >= start) & (seconds <= end)]
    # Between two samples a counter continues; before the first and after the last it is unknown.
    refused = _too_little(inside, start, end) or _hole([seconds[0] - start, end - seconds[-1]])
    if refused:
        return Energy(refused=refused)
    if (np.diff(joules) < 0).any():
        return Energy(refused="The energy counter went back: its driver was loaded again.")
    first, last = np.interp([start, end], seconds, joules)
    return Energy(joules=float(last - first), method=method)


def _by_power(seconds: Array, watts: Array, start: float, end: float) -> Energy:
    """Return the integral of power readings by the trapezoidal rule."""
    inside = seconds[(seconds > start) & (seconds < end)]
    x = np.array([start, *inside, end])
    refused = _too_little(inside, start, end) or _hole(np.diff(x))
    if refused:
        return Energy(refused=refused)
    y = np.interp(x, seconds, watts)
    return Energy(joules=float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2)), method="power")


def _too_little(inside: Array, start: float, end: float) -> str | None:
    if end - start < SHORTEST_WINDOW_SECONDS:
        return f"The window of {end - start:.2f} s is under {SHORTEST_WINDOW_SECONDS:g} s."
    if len(inside) < FEWEST_SAMPLES:
        return f"The window holds {len(inside)} samples, fewer than {FEWEST_SAMPLES}."
    return None


def _hole(gaps: Iterable[float]) -> str | None:
    longest = max(gaps)
    return f"The samples leave out {longest:.1f} s of the window." if longest > LONGEST_HOLE_SECONDS else None


def _known(values: Array) -> Array:
    return values[~np.isnan(values)]


def _mean(values: Array) -> float | None:
    known = ~np.isnan(values)
    # In place of what is missing a zero: NumPy adds up in pairs of places.
    return float(np.where(known, values, 0.0).sum() / known.sum()) if known.any() else None


def _most(values: Array) -> float | None:
    known = _known(values)
    return float(known.max()) if len(known) else None


def _least(values: Array) -> float | None:
    known = _known(values)
    return float(known.min()) if len(known) else None


def _bytes(value: float | None) -> int | None:
    return None if value is None else int(value)
