"""The published times beside those measured here."""

import pandas as pd
from matplotlib.figure import Figure

from study.analysis.figures.style import COLOURS, MARKERS, Drawn, batch_axis
from study.analysis.stats.analysis import Analysis
from study.analysis.words import place_words, short_key
from study.artifacts.plan import Plan
from study.artifacts.published import Published

METRICS = {
    "fit_seconds": "fit_time",
    "blog_seconds": "fit_time",
    "train_seconds": "fit_time",
    "epoch_seconds": "epoch_time",
}
"""The published metric of a total; documents print no other total."""


def published_times(published: Published, x: str, total: str) -> pd.DataFrame:
    """Return the published times to set beside ``total``: columns ``table``, ``hardware``, ``x`` and ``seconds``."""
    rows = [
        (figure.table, figure.hardware or "hardware not printed", figure.at[x], figure.value)
        for figure in published.figures
        if figure.metric == METRICS.get(total) and x in figure.at
    ]
    return pd.DataFrame(rows, columns=["table", "hardware", "x", "seconds"])


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return lines of the published runs and of the groups measured here.

    It is None where nothing was published, and at a reduced size, whose times are those of less work.
    """
    if plan.beside is None or plan.study.curve is None or plan.study.full:
        return None
    published = published_times(plan.beside, plan.study.curve.x, analysis.y)
    if published.empty:
        return None
    figure = Figure(figsize=(7.5, 4.2))
    axes = figure.subplots()
    for index, ((table, hardware), rows) in enumerate(published.groupby(["table", "hardware"], sort=False)):
        axes.plot(
            rows["x"],
            rows["seconds"],
            f"--{MARKERS[index]}",
            color=COLOURS[index],
            markerfacecolor="white",
            label=f"published, {table}: {hardware}",
        )
    for index, group in enumerate(analysis.groups, start=3):
        timed = [level for level in group.levels if level.time]
        axes.plot(
            [level.x or 0 for level in timed],
            [level.time.value for level in timed if level.time],
            f"-{MARKERS[index % 6]}",
            color=COLOURS[index % 6],
            label=f"measured here: {place_words(group.setting)}",
        )
    ticks = sorted({*published["x"], *(level.x or 0 for group in analysis.groups for level in group.levels)})
    batch_axis(axes, [float(tick) for tick in ticks], short_key(plan.study.curve.x))
    axes.set(ylabel="time (s)", ylim=(0, None))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    gap = _gap(published)
    return Drawn(
        figure,
        "The published times",
        f"Published times are single runs on other hardware.{gap} Times measured here are geometric means.",
        "Published times against batch size: "
        + "; ".join(
            f"{table} {size:g}: {seconds:g} s" for table, _, size, seconds in published.itertuples(index=False)
        ),
    )


def _gap(published: pd.DataFrame) -> str:
    """Return a sentence on how far two published runs of the same settings lie apart."""
    wide = published.pivot_table(index="x", columns="table", values="seconds")
    if wide.shape[1] != 2:
        return ""
    gaps = (wide.iloc[:, 0] - wide.iloc[:, 1]).abs()
    return f" The two differ by {gaps.min():.2f} to {gaps.max():.1f} s a point."
