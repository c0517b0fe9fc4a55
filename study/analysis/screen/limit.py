"""What limits the answer's setting: the largest part of its time, beside the setting that it is
compared with."""

from collections.abc import Mapping

import pandas as pd
from pydantic import Field

from study.analysis.answers import Answer
from study.analysis.answers.context import Context, capital
from study.analysis.answers.contrast import Contrast
from study.analysis.answers.fastest import Fastest, OnlyLevel
from study.analysis.answers.group import ends_with
from study.analysis.answers.switches import Combination, Switches
from study.analysis.answers.ways import Ways
from study.analysis.rows import CONSTRUCTION, OTHER, VALIDATION, Levelled, parts_of
from study.analysis.stats.usable import counted
from study.analysis.words import short
from study.artifacts.setting import Setting
from study.base.strict import Strict

START_UP, WAITING, COMPUTING, REST = "start-up", "waiting for data", "computing", "rest"
PHASES = {
    "graph_warm_up_seconds": START_UP,
    "data_wait_seconds": WAITING,
    "transfer_seconds": REST,
    "device_transform_seconds": REST,
    "forward_seconds": COMPUTING,
    "backward_seconds": COMPUTING,
    "optimizer_seconds": COMPUTING,
    VALIDATION: "validation",
    CONSTRUCTION: REST,
    OTHER: REST,
}
"""The phase to which each part of a time belongs, in the order of the bars."""
WARMED = ("device_transform_seconds", "forward_seconds", "backward_seconds", "optimizer_seconds")
"""The parts in which the first steps take longer, in the order of ``PHASES``."""
MOSTLY = 0.6
"""The share from which computing is shown by its own parts."""
LEAST = 0.1
"""The share of a time below which its largest phase limits nothing."""
End = tuple[Setting, str]
"""A group, and the label of one of its levels."""


class Bar(Strict):
    """One setting with the seconds of each phase of its time."""

    label: str
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        """The whole time."""
        return sum(self.seconds.values())


class Limit(Strict):
    """The largest phase of the answer's setting."""

    phase: str
    text: str
    bars: list[Bar] = Field(
        description="The answer's setting first, then the one that it is compared with."
    )


def limit_of(context: Context, first: Answer | Switches, rows: Levelled, y: str) -> Limit | None:
    """Return what takes the time of the setting that the answer names; None where its parts are not
    known."""
    parts = {group.setting: parts_of(group, frame, y) for group, frame in rows}
    cold = {group.setting: _cold(frame) for group, frame in rows}
    ends = [end for end in ends_of(context, first) if end[1] in parts.get(end[0], {})]
    if not ends:
        return None

    def phases(end: End, detailed: bool = False) -> dict[str, float]:
        return phases_of(parts[end[0]][end[1]], cold[end[0]].get(end[1], 0.0), detailed)

    mine = phases(ends[0])
    total = sum(mine.values())
    largest, seconds = max(mine.items(), key=lambda item: (item[0] != REST, item[1]))
    if seconds < LEAST * total:
        return None
    detailed = mine.get(COMPUTING, 0.0) >= MOSTLY * total
    bars = [
        Bar(label=capital(name_of(context, end)), seconds=phases(end, detailed)) for end in ends[:2]
    ]
    text = f"It takes {short(seconds)} of the {short(total)} s ({seconds / total:.0%})"
    others = [(value, name) for name, value in mine.items() if name not in (largest, REST)]
    if others and max(others)[0] >= LEAST / 2 * total:
        text += f"; {max(others)[1]} {short(max(others)[0])} s"
    if len(ends) > 1:
        there = phases(ends[1]).get(largest, 0.0)
        text += f"; in {name_of(context, ends[1])} it takes {short(there)} s"
    return Limit(phase=largest, text=f"{text}.", bars=bars)


def _cold(rows: pd.DataFrame) -> dict[str, float]:
    """Return by level what the first steps took beyond warm ones, in seconds, mean over the runs
    that count."""
    means = counted(rows).groupby("level")["warm_up_extra_seconds"].mean().dropna()
    return {str(level): max(0.0, float(seconds)) for level, seconds in means.items()}


def phases_of(parts: Mapping[str, float], cold: float, detailed: bool) -> dict[str, float]:
    """Return the seconds of each phase; ``detailed`` parts computing into forward, backward and
    optimizer.

    ``cold`` seconds of the first steps are start-up. They lie in the transforms on the device where
    a step is captured there, and in computing.
    """
    found: dict[str, float] = {}
    for column, phase in PHASES.items():
        name = column.removesuffix("_seconds") if detailed and phase == COMPUTING else phase
        if column in parts:
            taken = min(cold, parts[column]) if column in WARMED else 0.0
            cold -= taken
            found[START_UP] = found.get(START_UP, 0.0) + taken
            found[name] = found.get(name, 0.0) + parts[column] - taken
    return found


def name_of(context: Context, end: End) -> str:
    """Return a setting by its group and its level: ``stock fastai, 64``."""
    group, label = end
    who = context.who(group)
    if label == group.label:
        return who or "the run"
    return f"{who}, {label}" if who else context.setting(label)


def ends_of(context: Context, first: Answer | Switches) -> list[End]:
    """Return the setting that the answer names, and the one that it is compared with."""
    if isinstance(first, Ways):
        return [(way.group, way.level.label) for way in (first.ways[0], first.beside)]
    if isinstance(first, Switches):
        return ends_of(context, first.combination) if first.combination else []
    if isinstance(first, Combination):
        return [(first.group, first.best.label), (first.group, first.base.label)]
    if isinstance(first, Fastest):
        labels = [first.level.label]
        if first.slower:
            labels.append(
                max(first.slower, key=lambda label: context.seconds(first.group, label) or 0.0)
            )
        return [(first.group, label) for label in labels]
    if isinstance(first, OnlyLevel):
        group = context.group(first.group)
        return [(first.group, level.label) for level in group.levels] if group else []
    if isinstance(first, Contrast):
        found = []
        for side in (first.faster, first.slower):
            found += ends_with(
                context.study, context.groups, first.most.at.levels | {first.contrast: side}
            )[:1]
        return [(end.group.setting, end.level.label) for end in found]
    return []
