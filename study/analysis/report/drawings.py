"""From a study's table and analysis to the values of its charts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import pandas as pd

from study.analysis.analysis import Analysis
from study.analysis.answers.context import Context, bounds, capital
from study.analysis.answers.contrast import side
from study.analysis.answers.curve import law_words
from study.analysis.answers.fastest import level_verdict
from study.analysis.answers.group import Group, Level, ends_with
from study.analysis.answers.switches import Effect, Switches
from study.analysis.answers.ways import Ways
from study.analysis.figures import rows
from study.analysis.figures.marks import Arrow, Dot, Row
from study.analysis.figures.rows import RowsChart, rows_chart
from study.analysis.figures.svg import Chart
from study.analysis.rows import PARTS, Levelled, parts_of
from study.analysis.screen.limit import Bar
from study.analysis.table.exclusions import keys_of, place_of_record
from study.analysis.words import device_words, place_words, setting_words, short, short_key
from study.artifacts.plan import Plan
from study.config.study import Study

MOST_WITH_ACCURACY = 8
"""Rows of a chart that has the accuracy under each verdict."""
MOST_LAWS = 2
MOST_PAIRS = 4
"""Pairs that one chart can show."""
LOGARITHMIC_FROM = 3
"""Ratios that equal lengths show best."""
CAPTION = (
    "The mean of each setting, by the shares of its runs' time, all on one scale. Rest is the time "
    "outside the steps: ends of epochs, start and end of the loader's workers."
)
ON_A_GPU = (
    " On a GPU the parts of a step are in the device's own timeline: it waits where it has no data."
)


def main_chart(plan: Plan, groups: Levelled, analysis: Analysis) -> Chart | None:
    """Return every run of every group, with what the claims say of it."""
    keys = keys_of(plan.study)[0]
    claimed = _claimed(analysis)
    many = sum(len(group.levels) for group in analysis.groups) > MOST_WITH_ACCURACY
    names, drawn = Context(plan.study, analysis.groups).names, []
    # The colour of the answer is for what may be the fastest of all, and a slower way has no such
    # setting.
    ways = chain.from_iterable(one.ways for one in analysis.answers if isinstance(one, Ways))
    slower = {way.group for way in ways if way.slower}
    for group, own in groups:
        found = []
        for level in group.levels:
            row = _row(plan, level, group, own, many)
            look = "other" if row.look == "answer" and group.setting in slower else row.look
            found.append(replace(row, claimed=claimed.get((group.label, level.label)), look=look))
        heading = place_words(names.get(group.setting, group.setting))
        drawn.append(rows.Group(tuple(found), capital(heading)))
    drawn.sort(key=_fastest)
    caption = _laws(analysis, plan.study)
    by = "" if plan.study.effects else ", ".join(map(short_key, keys))
    axis, on_it = _axis(analysis)
    words = f"Seconds{f' by {by}' if by else ''}{on_it}"
    headings = (by, "mean", "in its group" if len(drawn) > 1 else "verdict")
    return rows_chart(
        RowsChart(tuple(drawn), analysis.screen.chart, words, caption, headings, axis)
    )


def _fastest(group: rows.Group) -> float:
    """Return the shortest mean time in a group that counts: the chart begins with the fastest
    group."""
    return min(
        (row.mean for row in group.rows if row.mean and row.look != "out"), default=float("inf")
    )


def pairs_chart(plan: Plan, groups: Levelled, analysis: Analysis) -> Chart | None:
    """Return the two sides of each ratio of the study's contrast, with an arrow from the slower
    mean to the faster one.

    A diamond is where a claim puts a side. None where there are more pairs than can be read.
    """
    if len(analysis.ratios) > MOST_PAIRS:
        return None
    frames, claimed = {group.setting: own for group, own in groups}, _claimed(analysis)
    drawn = []
    for ratio in analysis.ratios:
        pair = []
        for name in (ratio.slower, ratio.faster):
            for end in ends_with(
                plan.study, analysis.groups, ratio.at.levels | {ratio.contrast: name}
            )[:1]:
                row = _row(plan, end.level, end.group, frames[end.group.setting], brief=False)
                claim = claimed.get((end.group.label, end.level.label))
                words = capital(side(plan.study, ratio.contrast, name))
                pair.append(replace(row, label=words, bold=False, look="other", claimed=claim))
        times = ratio.together
        if len(pair) == 2 and times.value < 1:
            pair, times = pair[::-1], times.inverse
        if len(pair) < 2 or pair[0].mean is None:
            return None
        told = times.excludes_one and not times.within(plan.study.equivalence_margin)
        pair[1] = replace(pair[1], bold=told, look="answer" if told else "other")
        rowed = tuple(replace(row, verdict=row.under or row.verdict, under="") for row in pair)
        arrow = Arrow(f"{short(times.value)} times", bounds(times).strip(" ()"))
        drawn.append(rows.Group(rowed, capital(setting_words(ratio.at)), arrow=arrow))
    axis, on_it = _axis(analysis)
    words = f"Seconds{on_it}. An arrow is the ratio of two means."
    chart = RowsChart(
        tuple(drawn), analysis.screen.chart, words, headings=("", "mean", ""), axis=axis
    )
    return rows_chart(chart)


def _claimed(analysis: Analysis) -> dict[tuple[str, str], float]:
    """Return the seconds at which a claim puts a level, the first claim's, by the labels of its
    group and of itself."""
    # Backwards, so that the first claim's mark is the one that stays.
    marks = chain.from_iterable(claim.marks for claim in analysis.claims[::-1])
    return {(mark.group, mark.level): mark.seconds for mark in marks}


def _laws(analysis: Analysis, study: Study) -> str:
    """Return the law of each group's times that has one, as an end of the caption."""
    if study.curve is None:
        return ""
    known = [
        (group, law_words(group.curve, short_key(study.curve.x)))
        for group in analysis.groups
        if group.curve
    ]
    names = Context(study, analysis.groups).names
    told = [
        f"{f'{place_words(names[group.setting])}: ' if names else ''}{law}."
        for group, law in known
        if law
    ]
    return " ".join(told[:MOST_LAWS])


def _axis(analysis: Analysis) -> tuple[Literal["linear", "log"], str]:
    """Return the axis of the times, and what its title says of it: equal lengths show large ratios
    best."""
    far = any(
        max(ratio.ratio.value, 1 / ratio.ratio.value) >= LOGARITHMIC_FROM
        for ratio in analysis.ratios
    )
    return ("log", " on a logarithmic axis") if far else ("linear", "")


def _row(plan: Plan, level: Level, group: Group, every: pd.DataFrame, brief: bool) -> Row:
    """Return one level with the runs that have a time."""
    y, runs = plan.study.total, every[every["level"] == level.label]
    timed = runs[(runs["outcome"] == "ok") & runs[y].notna()]
    dots = [
        Dot(float(seconds), f"{plan.name}/{place_of_record(run, aside)}", isinstance(aside, str))
        for run, seconds, aside in zip(timed["run"], timed[y], timed["excluded"], strict=True)
    ]
    accuracy = f"{level.accuracy:.0%} accurate" if level.accuracy is not None else ""
    unfair, time = level.label in group.unfair, level.time
    best = (
        group.best is not None
        and level.label in {group.best, *group.indistinguishable}
        and not unfair
    )
    verdict = level_verdict(level, group, plan.study.equivalence_margin)
    return Row(
        label=level.label,
        dots=tuple(dots),
        mean=time.value if time else None,
        low=time.low if time else None,
        high=time.high if time else None,
        look="out" if unfair else "answer" if best else "other",
        verdict=(accuracy if unfair else verdict) if dots else "",
        under=accuracy if dots and not brief and not unfair else "",
        cause="" if dots else verdict,
        bold=level.label == group.best,
    )


@dataclass(frozen=True)
class Parts:
    """Where each mean goes: bars on one scale, by the names of their groups."""

    groups: dict[str, list[Bar]]
    caption: str

    @property
    def whole(self) -> float:
        """Seconds of the longest bar."""
        return max(bar.total for bar in chain.from_iterable(self.groups.values()))

    @property
    def names(self) -> list[str]:
        """The parts that take some time, in order."""
        known = set().union(*(bar.seconds for bar in chain.from_iterable(self.groups.values())))
        return [name for name in PARTS.values() if name in known]


def time_parts(groups: Levelled, analysis: Analysis) -> Parts | None:
    """Return the parts of each mean over the runs that count: a bar is as long as the mean in the
    tables."""
    found: dict[str, list[Bar]] = {}
    for group, own in groups:
        for label, parts in parts_of(group, own, analysis.y).items():
            seconds = {name: parts[part] for part, name in PARTS.items() if parts.get(part)}
            found.setdefault(place_words(group.setting), []).append(
                Bar(label=label, seconds=seconds)
            )
    told = CAPTION + ON_A_GPU * any((own["device"] == "cuda").any() for _, own in groups)
    return Parts(found, told) if found else None


def _ratios(title: str, subtitle: str, drawn: Sequence[Row]) -> Chart | None:
    """Return ratios on a logarithmic axis, with a line at 1."""
    key = {
        "run": "one pair of settings",
        "mean": "ratio, 95% interval",
        "bare": "ratio, no interval",
        "claim": "the claim",
    }
    group, headings = rows.Group(tuple(drawn)), ("", "times", "")
    return rows_chart(
        RowsChart((group,), title, subtitle, headings=headings, axis="ratio", unit="", key=key)
    )


def ratios_chart(analysis: Analysis) -> Chart | None:
    """Return the ratios of the study's contrast, beside the first that is claimed."""
    claimed = next((one.claimed for one in analysis.claims if one.kind == "ratio"), None)
    drawn = [
        Row(
            setting_words(ratio.at)
            or f"{device_words(ratio.slower)} over {device_words(ratio.faster)}",
            mean=ratio.together.value,
            low=ratio.together.low,
            high=ratio.together.high,
            claimed=claimed,
        )
        for ratio in analysis.ratios
    ]
    words = "Ratios of times, paired within blocks, on a logarithmic axis"
    words += (
        "" if any(row.low is not None for row in drawn) else "; too few clean runs for an interval"
    )
    return _ratios("The ratios, and the claim" if claimed else "The ratios", words, drawn)


def switch_charts(study: Study, analysis: Analysis) -> list[Chart]:
    """Return what each switch buys in each group, as times as fast."""
    charts = []
    for switches in analysis.switches:
        told = [
            Row(
                switches.label(effect),
                mean=effect.times_as_fast.value,
                low=effect.times_as_fast.low,
                high=effect.times_as_fast.high,
                dots=_pair_dots(study, analysis, switches, effect),
                look="answer" if (effect.times_as_fast.low or 0) > 1 else "other",
            )
            for effect in switches.effects
        ]
        title = f"What each switch buys, {place_words(switches.group)}"
        words = (
            "Times as fast as with the first level of the switch, on a logarithmic axis: the "
            "mean over all settings of "
            "the other switches. The 95% intervals hold for all switches at once."
        )
        told.sort(key=lambda row: row.mean or 0.0, reverse=True)
        charts.append(_ratios(title, words, told))
    return [chart for chart in charts if chart]


def _pair_dots(
    study: Study, analysis: Analysis, switches: Switches, effect: Effect
) -> tuple[Dot, ...]:
    """Return a dot for each two settings that differ in the switch alone: times as fast with it as
    without."""
    group = next(group for group in analysis.groups if group.setting == switches.group)
    dots = []
    for base in ends_with(study, [group], {effect.factor: effect.base}):
        others = ends_with(study, [group], {**base.levels, effect.factor: effect.level})
        dots += [Dot(base.time.value / other.time.value) for other in others]
    return tuple(dots)
