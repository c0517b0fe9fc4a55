"""Utilisation and memory over a whole sweep in one panel, as a monitor would have shown them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.figures.style import COLOURS, Drawn

Samples = tuple[str, pd.DataFrame]
"""The label of a run, and its samples."""
WIDTH, HEIGHT = 8.0, 3.8
PANEL_INCHES = 6.3
"""Width for labels: the panel's, less a margin; the layout is not known before it is drawn."""
LABEL_POINTS = 8
POINTS_DRAWN = 800
"""Number of points over the whole sweep, so that the file stays small; a short run has a few of its own."""
LEAST_POINTS = 15
SHORTEST_BIN_SECONDS = 0.1
LARGEST_SHIFT = 0.04
"""Largest shift of a flat label, as a share of the panel; beyond it all labels are upright and need less room."""
GIB = 2**30
TEXT: dict[str, Any] = {"fontsize": LABEL_POINTS, "va": "bottom"}
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


def draw(samples: Sequence[Samples], device: str, factor: str) -> Drawn | None:
    """Return the runs of ``device``, one after another in the order given; None where none has both values.

    ``samples`` holds for each run its label and its samples as
    :func:`study.artifacts.telemetry.read_parquet` returns them; ``factor`` says what the labels are.
    """
    source = SOURCES[device]
    runs = [(label, _values(frame, source)) for label, frame in samples]
    runs = [(label, values) for label, values in runs if len(values) > 1]
    if not runs:
        return None
    figure = Figure(figsize=(WIDTH, HEIGHT))
    left = figure.subplots()
    right = left.twinx()
    lengths = [values["seconds"].iloc[-1] for _, values in runs]
    total = sum(lengths)
    width = max(total / POINTS_DRAWN, SHORTEST_BIN_SECONDS)
    starts = [sum(lengths[:number]) for number in range(len(runs))]
    for start, (_, values) in zip(starts, runs, strict=True):
        own = max(min(width, values["seconds"].iloc[-1] / LEAST_POINTS), SHORTEST_BIN_SECONDS)
        binned = values.groupby((values["seconds"] // own).astype(int))
        x, utilisation, memory = start + binned["seconds"].mean(), binned["utilisation"].mean(), binned["memory"].max()
        left.fill_between(x, utilisation, color=UTILISATION, alpha=0.18, linewidth=0)
        left.plot(x, utilisation, color=UTILISATION, linewidth=0.8)
        right.plot(x, memory / GIB, color="white", linewidth=3.4, zorder=2)
        right.plot(x, memory / GIB, color=MEMORY, linewidth=1.8, zorder=3)  # above the white of every other run
    _axes(left, right, source, total)
    labels = [label for label, _ in runs]
    _mark(left, labels, starts, lengths, factor)
    peak = max(values["memory"].max() for _, values in runs) / GIB
    mean = sum(values["utilisation"].mean() * length for (_, values), length in zip(runs, lengths, strict=True)) / total
    return Drawn(
        figure,
        "Utilisation and memory",
        f"The whole sweep on {'the GPU' if device == 'cuda' else 'the CPU'}, run after run as executed, the time "
        f"between runs cut out. Thin line: {source.utilisation_label} (left), thick line: {source.memory_label} "
        f"(right). Utilisation is the mean and memory the peak of {width:.2g} s or less."
        + (" A utilisation of 100% says that some kernel always ran, not that the GPU was full." * (device == "cuda")),
        f"{len(runs)} runs over {total:.0f} s: {source.utilisation_label} is {mean:.0f}% on average, "
        f"{source.memory_label} peaks at {peak:.2f} GiB.",
    )


def _values(frame: pd.DataFrame, source: Source) -> pd.DataFrame:
    """Return seconds since the first sample, percent and bytes."""
    columns = {source.utilisation: "utilisation", source.memory: "memory"}
    values = frame[["seconds", *columns]].rename(columns=columns).dropna()
    return values.assign(seconds=values["seconds"] - values["seconds"].min())


def _axes(left: Axes, right: Axes, source: Source, total: float) -> None:
    left.set(xlim=(0, total), ylim=(0, 105), xlabel="time, runs joined [s]", ylabel=f"{source.utilisation_label} [%]")
    right.set(ylabel=f"{source.memory_label} [GiB]")
    right.set_ylim(0, right.get_ylim()[1] * 1.05)
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    left.figure.legend(
        [left.get_lines()[0], right.get_lines()[1]],
        [source.utilisation_label, source.memory_label],
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )


def _mark(axes: Axes, labels: list[str], starts: list[float], lengths: list[float], title: str) -> None:
    """Draw thin lines between the runs, and above each run its label, with a line to it where it was shifted."""
    for start in starts[1:]:
        axes.axvline(start, color="0.45", linewidth=0.5)
    total = starts[-1] + lengths[-1]
    centres = [(start + length / 2) / total for start, length in zip(starts, lengths, strict=True)]
    flat = [max(len(label), 2) * LABEL_POINTS * 0.68 / 72 / PANEL_INCHES for label in labels]
    places, rotation = spread(centres, flat), 0
    shift = max(abs(place - centre) for place, centre in zip(places, centres, strict=True))
    if sum(flat) > 1 or shift > LARGEST_SHIFT:
        places, rotation = spread(centres, [LABEL_POINTS * 1.25 / 72 / PANEL_INCHES] * len(labels)), 90
    line = axes.get_xaxis_transform()  # x in data, y in shares of the panel's height
    for label, centre, place in zip(labels, centres, places, strict=True):
        x = [centre * total, place * total]
        axes.plot(x, [1.0, 1.05], color="0.45", linewidth=0.5, transform=line, clip_on=False)
        axes.text(x[1], 1.06, label, transform=line, rotation=rotation, **TEXT, ha="center")
    axes.text(-0.01, 1.06, title, transform=axes.transAxes, **TEXT, ha="right")


def spread(centres: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return places from 0 to 1, in the same order and near ``centres``, at which labels of ``widths`` do not overlap.

    Neighbours that collide become a group about the middle of their centres, which then may collide with the next.
    Labels that are wider than the whole are squeezed evenly.
    """
    scale = min(1.0, 1 / sum(widths))
    widths = [width * scale for width in widths]
    groups: list[tuple[float, float, list[int]]] = []  # left edge, width, members
    for index, (centre, width) in enumerate(zip(centres, widths, strict=True)):
        members, whole = [index], width
        left = _inside(centre - width / 2, whole)
        while groups and groups[-1][0] + groups[-1][1] > left:
            before = groups.pop()
            members, whole = before[2] + members, before[1] + whole
            middle = sum(centres[member] for member in members) / len(members)
            left = _inside(middle - whole / 2, whole)
        groups.append((left, whole, members))
    places = []
    for left, _, members in groups:
        for member in members:
            places.append(left + widths[member] / 2)
            left += widths[member]
    return places


def _inside(left: float, width: float) -> float:
    return min(max(left, 0.0), 1 - width)
