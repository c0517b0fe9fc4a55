"""Utilisation over the time of a run: one curve for each group of settings, the mean over its runs.

Each run is reduced to ``BINS`` values as it is read, so that a thousand runs take no more memory
than their drawing.
"""

from collections.abc import Iterable
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from study.analysis.figures.rows import lines_of
from study.analysis.figures.style import Drawn, printable

Array = NDArray[np.float64]
Samples = tuple[str, pd.DataFrame]
"""The name of a run's group, and its samples."""
BINS = 50
"""Parts of a run's time."""
COLUMNS = {"cuda": "gpu_utilisation_percent"}
"""The column of each device; that of any other is the CPUs'."""
COLUMN = 280
"""Width of a name in one of the two columns, in pixels of the page's letters."""
LINES = ("-", "--", "-.", ":")
NOTE = " A utilisation of 100% says that some kernel always ran, not that the GPU was full."


def draw(samples: Iterable[Samples], device: str) -> Drawn | None:
    """Return a curve for each group, in the order in which they appear; None where no run has
    samples.

    ``samples`` yields for each run its group and its samples as
    :func:`study.artifacts.telemetry.from_parquet` returns them.
    """
    column = COLUMNS.get(device, "cpu_percent")
    groups: dict[str, list[Array]] = {}
    for name, frame in samples:
        parts = means_of_parts(frame, column)
        if parts is not None:
            groups.setdefault(name, []).append(parts)
    if not groups:
        return None
    figure = Figure(figsize=(7.5, 3.6))
    axes = figure.subplots()
    share = (np.arange(BINS) + 0.5) * 100 / BINS
    told = []
    for (name, runs), line in zip(groups.items(), cycle(LINES), strict=False):
        means = np.mean(runs, axis=0)
        axes.plot(share, means, line, label="\n".join(lines_of(printable(name), COLUMN)))
        told.append(f"{name or 'all'}: {means.mean():.0f}% in {len(runs)} runs")
    of = "GPU utilisation" if device == "cuda" else "CPU utilisation"
    axes.set(
        xlabel="share of the time of a run (%)", ylabel=f"{of} (%)", xlim=(0, 100), ylim=(0, 105)
    )
    if any(groups):
        figure.legend(loc="outside upper left", ncols=2, frameon=False)
    caption = (
        f"{of} over the time of a run: the mean over the runs, in {BINS} equal parts of their time."
    )
    return Drawn(figure, of, caption + NOTE * (device == "cuda"), f"{of}. {'. '.join(told)}.")


def means_of_parts(frame: pd.DataFrame, column: str) -> Array | None:
    """Return the mean of a column in each part of a run (BINS,); None where fewer than two samples
    hold a value."""
    seconds, values = frame[["seconds", column]].dropna().to_numpy(float).T
    if len(seconds) < 2 or np.ptp(seconds) <= 0:
        return None
    places = np.minimum(((seconds - seconds.min()) / np.ptp(seconds) * BINS).astype(int), BINS - 1)
    counts = np.bincount(places, minlength=BINS)
    known = np.flatnonzero(counts)  # a short run has fewer samples than parts
    means = np.bincount(places, values, BINS)[known] / counts[known]
    found: Array = np.interp(np.arange(BINS), known, means)
    return found
