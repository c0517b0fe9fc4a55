"""The charts of settings as rows: every run, the pairs of a contrast, and what switches buy."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Literal

import pandas as pd

from study.analysis.analysis import Analysis
from study.analysis.answers.context import Context, bounds, capital
from study.analysis.answers.contrast import side
from study.analysis.answers.fastest import level_verdict
from study.analysis.answers.group import ends_with
from study.analysis.answers.ways import Ways
from study.analysis.figures.rows import Dot, Look, Row, RowGroup, RowsChart, rows_chart
from study.analysis.figures.style import Chart
from study.analysis.table.exclusions import keys_of, place_of_record
from study.analysis.words import place_words, setting_words, short
from study.artifacts.plan import Plan
from study.config.settings import in_words
from study.config.study import Study

MOST_PAIRS = 4
"""Pairs that one chart can show."""
LOGARITHMIC_FROM = 3
"""Ratios that equal lengths show best."""
Rows = Mapping[tuple[str, str], Row]
"""The row of each setting, by the labels of its group and of its level."""


def rows_of(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Rows:
    """Return the row of each setting, with the runs that have a time and the first claim of it."""
    claimed = dict[tuple[str, str], float]()
    found = {}
    y = plan.study.total
    columns = ["run", y, "excluded", "session", "block"]
    for claim in analysis.claims:
        for mark in claim.marks:
            claimed.setdefault((mark.group, mark.level), mark.seconds)
    # The colour of the answer is for what may be the fastest of all, and a slower way has no such
    # setting.
    ways = chain.from_iterable(one.ways for one in analysis.answers if isinstance(one, Ways))
    slower = {way.group for way in ways if way.slower}
    for group in analysis.groups:
        own = frame[frame["group"] == group.label]
        best = {group.best, *group.indistinguishable} if group.best else set()
        for level in group.levels:
            runs = own[(own["level"] == level.label) & (own["outcome"] == "ok") & own[y].notna()]
            dots = [
                Dot(
                    seconds,
                    f"#run-{plan.name}/{place_of_record(run, excluded)}",
                    isinstance(excluded, str),
                    (start, block),
                )
                for run, seconds, excluded, start, block in runs[columns].itertuples(index=False)
            ]
            times = group.ratios.get(level.label)
            leads = level.label in best and group.setting not in slower
            found[group.label, level.label] = Row(
                label=level.label,
                dots=dots,
                time=level.time,
                look="out" if level.label in group.ineligible else "answer" if leads else "other",
                verdict=level_verdict(level, group, plan.study.equivalence_margin),
                accuracy="" if level.accuracy is None else f"{level.accuracy:.0%} accurate",
                ratio=bounds(times, "").strip(" ()") if times else "",
                claimed=claimed.get((group.label, level.label)),
                best=level.label == group.best,
            )
    return found


def main_chart(plan: Plan, found: Rows, analysis: Analysis) -> Chart | None:
    """Return every run of every group, with what the claims say of it."""
    names = Context(plan.study, analysis.groups).names
    drawn = []
    for group in analysis.groups:
        heading = capital(place_words(names.get(group.setting, group.setting)))
        own = [found[group.label, level.label] for level in group.levels]
        drawn.append(RowGroup(own, heading))
    drawn.sort(key=_fastest)
    by = "" if plan.study.effects else ", ".join(map(in_words, keys_of(plan.study)[0]))
    words = f"Seconds{f' by {by}' if by else ''}"
    if len(found) > len(drawn) > 1:
        words += "; each verdict is within its group"
    return rows_chart(RowsChart(drawn, analysis.screen.chart, words, _axis(analysis)))


def _fastest(group: RowGroup) -> float:
    """Return the shortest mean time in a group that counts: the chart begins with the fastest
    group."""
    times = [row.time.value for row in group.rows if row.time and row.look != "out"]
    return min(times, default=float("inf"))


def pairs_chart(plan: Plan, found: Rows, analysis: Analysis) -> Chart | None:
    """Return the two sides of each ratio of the study's contrast, with an arrow from the slower
    mean to the faster one.

    A diamond is where a claim puts a side. None without ratios, or with more than can be read.
    """
    if not 1 <= len(analysis.ratios) <= MOST_PAIRS:
        return None
    drawn = []
    for ratio in analysis.ratios:
        pair = []
        times = ratio.together
        told = times.excludes_one and not times.within(plan.study.equivalence_margin)
        for name in (ratio.slower, ratio.faster):
            levels = ratio.at.levels | {ratio.contrast: name}
            for end in ends_with(plan.study, analysis.groups, levels)[:1]:
                row = found[end.group.label, end.level.label]
                pair.append(
                    replace(
                        row,
                        label=capital(side(plan.study, ratio.contrast, name)),
                        verdict=row.accuracy or row.verdict,
                        accuracy="",
                        ratio="",
                        look="other",
                    )
                )
        if len(pair) < 2:
            return None
        if times.value < 1:
            pair = pair[::-1]
            times = times.inverse
        pair[0] = replace(pair[0], best=False)
        pair[1] = replace(pair[1], best=told, look="answer" if told else "other")
        arrow = f"{short(times.value)} times", bounds(times).strip(" ()")
        drawn.append(RowGroup(pair, capital(setting_words(ratio.at)), arrow))
    words = "Seconds; an arrow is the ratio of two means"
    return rows_chart(RowsChart(drawn, analysis.screen.chart, words, _axis(analysis)))


def _axis(analysis: Analysis) -> Literal["linear", "log"]:
    """Return the axis of the times: equal lengths show large ratios best."""
    ratios = [ratio.ratio.value for ratio in analysis.ratios]
    far = any(max(ratio, 1 / ratio) >= LOGARITHMIC_FROM for ratio in ratios)
    return "log" if far else "linear"


def switch_charts(study: Study, analysis: Analysis) -> list[Chart]:
    """Return what each switch buys in each group, as times as fast."""
    charts = []
    for switches in analysis.switches:
        effects = sorted(switches.effects, key=lambda one: one.times_as_fast.value, reverse=True)
        group = next(group for group in analysis.groups if group.setting == switches.group)
        told = []
        for effect in effects:
            # a dot for each two settings that differ in the switch alone
            dots = []
            for base in ends_with(study, [group], {effect.factor: effect.base}):
                others = ends_with(study, [group], {**base.levels, effect.factor: effect.level})
                dots += [Dot(base.time.value / other.time.value) for other in others]
            look: Look = "answer" if (effect.times_as_fast.low or 0) > 1 else "other"
            name, times = switches.label(effect), effect.times_as_fast
            told.append(Row(name, time=times, dots=dots, look=look, unit=" times"))
        title = f"What each switch buys, {place_words(switches.group)}"
        words = (
            "Times as fast as without the switch: the mean over all settings of "
            "the other switches; the 95% intervals hold for all switches at once"
        )
        charts.append(rows_chart(RowsChart([RowGroup(told)], title, words, "ratio")))
    return [chart for chart in charts if chart]
