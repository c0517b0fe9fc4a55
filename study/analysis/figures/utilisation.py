"""Utilisation and memory over the time of a run: a small panel for each level, with the median over its runs.

Each run is reduced to ``BINS`` values as it is read, so that a thousand runs take no more memory than their drawing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from study.analysis.figures.style import COLOURS, Drawn

Array = NDArray[np.float64]
Samples = tuple[str, pd.DataFrame]
"""The label of a run, and its samples."""
BINS = 60
"""Parts of a run's time."""
BAND = (10, 90)
"""Percentiles over the runs between which a band is drawn."""
MOST_PANELS, COLUMNS = 16, 4
PANEL_WIDTH, PANEL_HEIGHT, REST = 2.4, 1.7, 1.2
"""In inches; the rest of the figure is for the axes' names and the legend."""
GIB = 2**30
UTILISATION, MEMORY = COLOURS[0], COLOURS[1]


@dataclass(frozen=True)
class Source:
    """The columns that a device's figure shows, in percent and in bytes, with their names."""

    utilisation: str
    memory: str
    utilisation_label: str
    memory_label: str


SOURCES = {
    "cuda": Source("gpu_utilisation_percent", "gpu_memory_used_bytes", "GPU utilisation", "device memory used"),
    "cpu": Source("cpu_percent", "process_resident_bytes", "CPU utilisation", "resident memory of the run"),
}
NOTES = {
    "cuda": " A utilisation of 100% says that some kernel always ran, not that the GPU was full.",
    "cpu": " Memory is summed over the processes of the run: a page that they share counts in each, so that the sum is "
    "an upper bound.",
}


@dataclass(frozen=True)
class Trace:
    """One run in ``BINS`` equal parts of its time."""

    seconds: float
    """From the first sample to the last."""
    utilisation: Array
    """Percent, mean of each part (BINS,)."""
    memory: Array
    """GiB, peak of each part (BINS,)."""
    mean: float
    """Utilisation in percent, mean over all samples."""


def draw(samples: Iterable[Samples], device: str, factor: str) -> Drawn | None:
    """Return a panel for each level, in the order in which they appear; None where no run has both values.

    ``samples`` yields for each run its level and its samples as :func:`study.artifacts.telemetry.from_parquet` returns
    them; ``factor`` says what the levels are.
    """
    device = device if device == "cuda" else "cpu"  # nothing samples a TPU
    source, levels = SOURCES[device], dict[str, list[Trace]]()
    for label, frame in samples:
        trace = _trace(frame, source)
        if trace:
            levels.setdefault(label, []).append(trace)
    if not levels:
        return None
    places = np.linspace(0, len(levels) - 1, min(len(levels), MOST_PANELS)).round().astype(int)
    shown = [list(levels)[place] for place in places]
    figure = _figure({label: levels[label] for label in shown}, source, factor)
    traces = [trace for runs in levels.values() for trace in runs]
    total = sum(trace.seconds for trace in traces)
    mean = sum(trace.mean * trace.seconds for trace in traces) / total
    peak = max(trace.memory.max() for trace in traces)
    return Drawn(
        figure,
        "Utilisation and memory",
        f"{source.utilisation_label} (left) and {source.memory_label} (right) on "
        f"{'the GPU' if device == 'cuda' else 'the CPU'} over the time of a run, a panel for each {factor}. A line is "
        f"the median over the runs, a band holds the middle {BAND[1] - BAND[0]}% of them. Runs of different lengths "
        f"are drawn at their median length, in {BINS} parts: utilisation is the mean of a part, memory its peak."
        + (f" {len(shown)} of {len(levels)} levels have a panel." if len(shown) < len(levels) else "")
        + NOTES[device],
        f"{len(traces)} runs over {total:.0f} s: {source.utilisation_label} is {mean:.0f}% on average, "
        f"{source.memory_label} peaks at {peak:.2f} GiB.",
    )


def _trace(frame: pd.DataFrame, source: Source) -> Trace | None:
    """Return one run in parts; None where fewer than two samples hold both values."""
    values = frame[["seconds", source.utilisation, source.memory]].to_numpy(float)
    seconds, utilisation, memory = values[~np.isnan(values).any(1)].T
    if len(seconds) < 2 or np.ptp(seconds) <= 0:
        return None
    places = np.minimum(((seconds - seconds.min()) / np.ptp(seconds) * BINS).astype(int), BINS - 1)
    counts, peaks = np.bincount(places, minlength=BINS), np.zeros(BINS)
    np.maximum.at(peaks, places, memory / GIB)
    known = np.flatnonzero(counts)  # a short run has fewer samples than parts
    means = np.bincount(places, utilisation, BINS)[known] / counts[known]
    parts = np.arange(BINS)
    return Trace(
        seconds=float(np.ptp(seconds)),
        utilisation=np.interp(parts, known, means),
        memory=np.interp(parts, known, peaks[known]),
        mean=float(utilisation.mean()),
    )


def _figure(levels: dict[str, list[Trace]], source: Source, factor: str) -> Figure:
    rows = -(-len(levels) // COLUMNS)
    columns = -(-len(levels) // rows)
    figure = Figure(figsize=(max(columns, 2) * PANEL_WIDTH + REST, rows * PANEL_HEIGHT + REST))
    grid: Any = figure.subplots(rows, columns, squeeze=False, sharey=True)
    top = max(trace.memory.max() for runs in levels.values() for trace in runs) * 1.08 or 1.0
    for number, (left, (label, runs)) in enumerate(zip(grid.flat, levels.items(), strict=False)):
        right = left.twinx()
        _panel(left, right, runs)
        left.set_title(f"{factor} {label}, {len(runs)} run(s)", fontsize=9)
        left.set_ylim(0, 105)
        right.set_ylim(0, top)
        right.grid(visible=False)
        right.spines["right"].set_visible(True)
        for axes in (left, right):  # or the caller's style says how many ticks there is room for
            axes.tick_params(labelsize=rcParams["xtick.labelsize"])
        right.tick_params(labelright=number % columns == columns - 1 or number == len(levels) - 1)
    for axes in grid.flat[len(levels) :]:
        axes.set_axis_off()
    figure.supxlabel("time within a run [s]", fontsize=10)
    figure.supylabel(f"{source.utilisation_label} [%]", fontsize=10)
    lines = [left.get_lines()[0], right.get_lines()[0]]
    words = [source.utilisation_label, f"{source.memory_label} [GiB]"]
    figure.legend(lines, words, loc="outside upper right", ncols=2, frameon=False)
    return figure


def _panel(left: Axes, right: Axes, runs: Sequence[Trace]) -> None:
    x = (np.arange(BINS) + 0.5) / BINS * float(np.median([trace.seconds for trace in runs]))
    parts = [
        (left, UTILISATION, "-", np.array([trace.utilisation for trace in runs])),
        (right, MEMORY, "--", np.array([trace.memory for trace in runs])),
    ]
    for axes, colour, line, values in parts:
        low, high = np.percentile(values, BAND, axis=0)
        axes.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.plot(x, np.median(values, axis=0), line, color=colour, linewidth=1.4)
    left.set_xlim(0, x[-1] + x[0])
