"""From a study's table and analysis to the values of its charts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from study.analysis.analysis import Analysis, Group, Level
from study.analysis.charts import order, phases, ratios, times
from study.analysis.charts.svg import Chart
from study.analysis.published.beside import TIMES, Row, Series
from study.analysis.rows import VALIDATION, Levelled, over_means, parts_of, shares_of
from study.analysis.stats.findings import Ways
from study.analysis.stats.usable import keys_of
from study.analysis.wording.cards import REST, WARM_UP
from study.analysis.wording.steps import graph_warm_up_sentence
from study.analysis.wording.switches import effect_label
from study.analysis.words import device_words, group_names, listed, place_words, setting_words, short_key
from study.artifacts.plan import Plan


def main_chart(plan: Plan, groups: Levelled, analysis: Analysis, published: Sequence[Series]) -> Chart | None:
    """Return every run of every group, beside the published times except at a reduced size, which does less work."""
    source, keys = None if plan.study.full else _published_times(published, analysis), keys_of(plan.study)[0]
    beside = {row.label: row for row in source.rows if row.ours} if source else {}
    by = f", by {' and '.join(map(short_key, keys))}" if keys and not plan.study.effects else ""
    panels = [
        times.Panel(
            f"{place_words(group.setting)}{by}",
            tuple(
                _row(plan.name, level, group, rows[rows["level"] == level.label], analysis.y, beside)
                for level in group.levels
            ),
        )
        for group, rows in groups
    ]
    caption = "Every dot is a run; the bar is the geometric mean, the line its 95% interval."
    if any(level.accuracy is not None for group in analysis.groups for level in group.levels):
        caption += " Under each setting: the accuracy after training."
    if source:
        caption += f" Diamonds are published times ({source.source.short_name}, {source.place})."
    if any(group.unfair for group in analysis.groups):
        caption += " Settings in amber are not shown to have learned as well as the best, and are no candidates."
    return times.times_chart(panels, "Every run", caption)


def _row(study: str, level: Level, group: Group, rows: pd.DataFrame, y: str, published: dict[str, Row]) -> times.Row:
    """Return one level with the runs that have a time, and the time published for these runs."""
    timed = rows[(rows["outcome"] == "ok") & rows[y].notna()]
    dots = tuple(
        times.Dot(f"{study}/{run}", float(seconds), _kind(aside, disturbed))
        for run, seconds, aside, disturbed in zip(
            timed["run"], timed[y], timed["excluded"], timed["disturbed"], strict=True
        )
    )
    note = f"{level.accuracy:.0%} accurate" if level.accuracy is not None else ""
    if not dots:
        note = listed([name.replace("_", " ") for name in level.outcomes]) if level.outcomes else "no run"
    time, beside = level.time, published.get(level.label)
    return times.Row(
        label=level.label,
        note=note,
        doubtful=level.label in group.unfair,
        best=level.label == group.best,
        dots=dots,
        mean=time.value if time else None,
        low=time.low if time else None,
        high=time.high if time else None,
        published=beside.published if beside and beside.ours == time else None,
    )


def _kind(aside: object, disturbed: object) -> times.Kind:
    return "aside" if isinstance(aside, str) else "disturbed" if isinstance(disturbed, str) else "run"


def _published_times(published: Sequence[Series], analysis: Analysis) -> Series | None:
    """Return the first published table of times that stands beside the mean of a level; None without one.

    A document may print the same times again, in a figure.
    """
    means = [(level.label, level.time) for group in analysis.groups for level in group.levels if level.time]
    of_time = [series for series in published if series.metric == "fit_time"]
    return next((one for one in of_time if any((row.label, row.ours) in means for row in one.rows)), None)


def phases_chart(groups: Levelled, analysis: Analysis) -> Chart | None:
    """Return the parts of the training time of each level over its runs that count.

    A bar is as long as the level's mean in the tables; its parts have their shares of the runs' time.
    """
    panels = []
    for group, rows in groups:
        bars = tuple(phases.Bar(label, parts) for label, parts in parts_of(group, rows, analysis.y).items())
        panels.append(phases.Bars(place_words(group.setting), bars))
    caption = (
        "The mean of each setting, by the shares of its runs' time, all on one scale. Other is the time outside the "
        "steps: ends of epochs, start and end of the loader's workers."
    )
    if any((rows["device"] == "cuda").any() for _, rows in groups):
        caption += " On a GPU the parts of a step are in the device's own timeline: it waits where it has no data."
    caption += graph_warm_up_sentence(pd.concat([rows for _, rows in groups])) if panels else ""
    return phases.phases_chart(panels, "Where the time goes", caption)


def shares_of_best(plan: Plan, groups: Levelled, analysis: Analysis) -> tuple[str, dict[str, float]] | None:
    """Return the setting that the answer names first, with the shares of the parts of its time."""
    names = group_names([group.setting for group in analysis.groups])
    first = next((answer.ways[0].group for answer in analysis.answer if isinstance(answer, Ways)), None)
    for group, rows in sorted(groups, key=lambda one: one[0].setting != first):
        share = shares_of(rows, analysis.y).get(str(group.best))
        if share is None:
            continue
        main = {
            "waiting for data": share["data_wait_seconds"],
            "computing": share[["forward_seconds", "backward_seconds", "optimizer_seconds"]].sum(),
            "validation": share.get(VALIDATION, 0.0),
            WARM_UP: share["graph_warm_up_seconds"],
            # Where records have no part for the warm-up, it is in the transforms.
            f"{WARM_UP} and transforms" if graph_warm_up_sentence(rows) else "transforms on the device": share[
                "device_transform_seconds"
            ],
        }
        keys = keys_of(plan.study)[0]
        name = f"{short_key(keys[0])} {group.best}" if len(keys) == 1 else str(group.best)
        label = f"{place_words(names[group.setting])}, {name}" if names else name
        return label, main | {REST: 1 - sum(main.values())}
    return None


def ratios_chart(analysis: Analysis, claimed: float | None) -> Chart | None:
    """Return the ratios of the study's contrast, the claimed one as a line."""
    rows = [
        ratios.Measured(
            setting_words(ratio.at.levels) or f"{device_words(ratio.slower)} over {device_words(ratio.faster)}",
            ratio.ratio.value,
            ratio.ratio.low,
            ratio.ratio.high,
        )
        for ratio in analysis.ratios
    ]
    known = any(row.low is not None for row in rows)
    caption = f"Ratios of times, paired within blocks, {'with 95% intervals, ' * known}on a logarithmic axis."
    title = "The ratios, and the published claim" if claimed else "The ratios"
    chart = ratios.ratios_chart(rows, claimed, title, caption)
    if known or chart is None:
        return chart
    caption += " There are too few clean runs for an interval."
    return replace(chart, caption=caption, series=chart.series | {"measured": "measured here, no interval"})


def switch_charts(analysis: Analysis) -> list[Chart]:
    """Return what each switch buys in each group, as times as fast."""
    charts = []
    for switches in analysis.switches:
        counts = Counter(effect.factor for effect in switches.effects)
        rows = [
            ratios.Measured(
                effect_label(effect, counts[effect.factor] > 1),
                effect.times_as_fast.value,
                effect.times_as_fast.low,
                effect.times_as_fast.high,
            )
            for effect in switches.effects
        ]
        title = f"What each switch buys, {place_words(switches.group)}"
        caption = (
            "Times as fast as with the first level of the switch, on a logarithmic axis: the mean over all settings of "
            "the other switches. The 95% intervals hold for all switches at once."
        )
        charts.append(ratios.ratios_chart(rows, None, title, caption))
    return [chart for chart in charts if chart]


def published_chart(series: Series) -> Chart | None:
    """Return the published ratios of a table beside ours; None where it has no ratio or nothing was measured."""
    if series.metric not in TIMES or series.base is None or len(series.rows) < 2:
        return None
    rows = [
        ratios.Measured(row.label, row.ours_ratio.value, row.ours_ratio.low, row.ours_ratio.high, row.published_ratio)
        for row in series.rows
        if row.ours_ratio
    ]
    if len(rows) < 2:
        return None
    base = f"{series.setting} {series.base}" if series.base.isdecimal() else series.base
    title = f"{series.words.removesuffix(' (s)').capitalize()} relative to {base}"
    title += f", {series.ours_with}" if series.ours_with else ""
    return ratios.ratios_chart(
        rows, None, title, "The same ratio here, with its 95% interval, and as it was published."
    )


def order_chart(plan: Plan, groups: Levelled, analysis: Analysis) -> Chart | None:
    """Return each run's time over the mean of its setting, in the order of execution."""
    runs = over_means(groups, analysis.y)
    executed = [
        order.Executed(f"{plan.name}/{run}", float(over), int(session), isinstance(aside, str))
        for run, over, session, aside in zip(runs["run"], runs["over"], runs["session"], runs["excluded"], strict=True)
    ]
    caption = "Each run's time over the mean of its setting. A slope or a step comes from the machine."
    return order.order_chart(executed, "Order of execution", caption)
