"""Time against the order of execution: a machine that drifts shows here."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from study.analysis.figures.style import COLOURS, MARKERS, Drawn, marked, unmarked
from study.analysis.stats.analysis import Analysis
from study.artifacts.plan import Plan


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return each run's time over its level's mean, in the order of execution; None with fewer than four runs."""
    y = analysis.y
    ok = frame[(frame["outcome"] == "ok") & frame[y].notna()].sort_values("started", kind="stable")
    keys = plan.study.compared or ["device"]
    if len(ok) < 4 or ok.groupby(keys).size().max() < 2:
        return None
    counts = ok[y].where(ok["set_aside"].isna())
    relative = ok[y] / counts.groupby([ok[key] for key in keys]).transform("mean")
    place = pd.Series(range(1, len(ok) + 1), index=ok.index)
    figure = Figure(figsize=(7, 3.4))
    axes = figure.subplots()
    plain = unmarked(ok)
    sessions = plain["session"].astype(int).astype(str) + ", block " + plain["block"].astype(str)
    for index, name in enumerate(dict.fromkeys(sessions)):
        mine = sessions.index[sessions == name]
        axes.plot(place[mine], relative[mine], MARKERS[index % 6], color=COLOURS[index % 6], label=f"session {name}")
    for label, part, look in marked(ok):
        axes.plot(place[part.index], relative[part.index], label=label, **look)
    axes.axhline(1, color="0.4", linewidth=1, linestyle=":")
    axes.set(xlabel="order of execution", ylabel="time over its setting's mean")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return Drawn(
        figure,
        "Order",
        "Each run's time over the mean of its setting, as executed. A slope or a step comes from the machine, not "
        "from the setting.",
        f"Relative time of {len(ok)} runs in the order of execution, "
        f"from {relative.min():.2f} to {relative.max():.2f}.",
    )
