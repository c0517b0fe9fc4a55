"""Telemetry of one run on the host side: it turns samples into columns of the table.

A GPU's power reading is unreliable. On recent cards nvidia-smi and NVML see the power only during
about a quarter of the time (https://arxiv.org/abs/2312.02741), so its integral may be far off, most
of all for short loads. The energy counter covers the whole time, but ticks about every 100 ms.
Hence the counter is used if there is one, the method is always named, and a window under 2 s gets
no number.
"""

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from study.artifacts.telemetry import COLUMNS

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
"""NVML's names of the causes of a low clock (nvml.h, nvmlClocksEventReasons). Idleness is not one
of them."""


@dataclass(frozen=True)
class Energy:
    """Energy of one window in joules, with its method, or the reason for its absence."""

    joules: float | None = None
    method: Literal["counter", "power"] | None = None
    """`counter`: NVML's energy counter. `power`: NVML's power readings, integrated."""
    refused: str | None = None


def summarise(frame: pd.DataFrame, start: float, end: float, device: str) -> dict[str, Any]:
    """Return what samples (columns ``COLUMNS``) from ``start`` to ``end``, both in epoch seconds,
    tell of a run.

    The keys are columns of the table of timings; a value is None where no sample has one. The
    energy is that of the GPUs, where the ``device`` that trained is one.
    """
    # Arrays: a study has thousands of these tables, and pandas takes longer to choose a column than
    # to add it up.
    whole = dict(zip(COLUMNS, frame[list(COLUMNS)].to_numpy(float).T, strict=True))
    inside = (whole["seconds"] >= start) & (whole["seconds"] <= end)
    window = {name: values[inside] for name, values in whole.items()}
    masks = window["gpu_throttle_reasons"]
    energy = (
        _gpu_energy(whole, start, end)
        if device == "cuda"
        else Energy(refused="Only a GPU counts its energy.")
    )
    return {
        "cpu_percent": _of_known(np.mean, window["cpu_percent"]),
        "peak_tree_resident_bytes": _of_known(np.max, window["process_resident_bytes"], int),
        "gpu_utilisation_percent": _of_known(np.mean, window["gpu_utilisation_percent"]),
        "peak_device_used_bytes": _of_known(np.max, window["gpu_memory_used_bytes"], int),
        "sm_clock_mhz": _of_known(np.mean, window["gpu_sm_clock_mhz"]),
        "gpu_temperature_celsius": _of_known(np.max, window["gpu_temperature_celsius"]),
        "throttle_reasons": "; ".join(throttle_words(masks[~np.isnan(masks)])) or None,
        "energy_joules": energy.joules,
        "energy_method": energy.method,
        "energy_refused": energy.refused,
    }


def throttle_words(masks: Iterable[int]) -> list[str]:
    """Return the union of NVML's bit masks in words, without idleness."""
    union = functools.reduce(operator.or_, map(int, masks), 0)
    bits = [1 << place for place in range(union.bit_length()) if union >> place & 1]
    return [THROTTLE_WORDS.get(bit, f"reason {bit:#x}") for bit in bits if bit != IDLE]


def _gpu_energy(samples: Mapping[str, Array], start: float, end: float) -> Energy:
    power, counted = _read(samples, "gpu_power_watts"), _read(samples, "gpu_energy_joules")
    if len(counted[0]):
        found = _by_counter(*counted, start, end)
        # A counter that stands still is broken, as on some virtual GPUs; the power may still be
        # known.
        if found.refused or found.joules or not len(power[0]):
            return found
    if not len(power[0]):
        return Energy(refused="The device reports neither its energy nor its power.")
    return _by_power(*power, start, end)


def _read(samples: Mapping[str, Array], name: str) -> tuple[Array, Array]:
    known = ~(np.isnan(samples["seconds"]) | np.isnan(samples[name]))
    return samples["seconds"][known], samples[name][known]


def _by_counter(seconds: Array, joules: Array, start: float, end: float) -> Energy:
    inside = seconds[(seconds >= start) & (seconds <= end)]
    # Between two samples a counter continues; before the first and after the last it is unknown.
    refused = _too_little(inside, start, end) or _hole([seconds[0] - start, end - seconds[-1]])
    if refused:
        return Energy(refused=refused)
    if (np.diff(joules) < 0).any():
        return Energy(refused="The energy counter went back: its driver was loaded again.")
    first, last = np.interp([start, end], seconds, joules)
    return Energy(joules=float(last - first), method="counter")


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
    if longest > LONGEST_HOLE_SECONDS:
        return f"The samples leave out {longest:.1f} s of the window."
    return None


def _of_known(summary: Callable[[Array], Any], values: Array, number: type = float) -> Any:
    """Return the mean or the largest of the values that were read; None where none was."""
    known = values[~np.isnan(values)]
    return number(summary(known)) if len(known) else None
