"""The main table of a study: five columns, one number for each quantity."""

from dataclasses import dataclass

from study.analysis.stats.analysis import Analysis, Group, Level
from study.analysis.wording.levels import level_verdict
from study.analysis.words import device_words, three_digits

NONE = "\N{EN DASH}"


@dataclass(frozen=True)
class LevelRow:
    """One setting."""

    label: str
    time: str
    interval: str
    """In brackets, for a line of its own where there is no room; empty where there is none."""
    times_best: str
    accuracy: str
    verdict: str
    look: str
    """``best``, ``doubt`` or nothing: how the row is marked, beside its words."""


@dataclass(frozen=True)
class LevelTable:
    """The settings that are compared with each other."""

    title: str
    rows: tuple[LevelRow, ...]


def level_tables(analysis: Analysis) -> list[LevelTable]:
    """Return a table for each group."""
    return [
        LevelTable(device_words(group.label), tuple(_row(level, group) for level in group.levels))
        for group in analysis.groups
    ]


def _row(level: Level, group: Group) -> LevelRow:
    best = next((one.time.value for one in group.levels if one.label == group.best and one.time), None)
    time = level.time
    return LevelRow(
        label=level.label,
        time=three_digits(time.value) if time else NONE,
        interval=""
        if time is None or time.low is None or time.high is None
        else f"({three_digits(time.low)} to {three_digits(time.high)})",
        times_best=f"{time.value / best:.2f}x" if time and best else NONE,
        accuracy=f"{100 * level.accuracy:.1f}%" if level.accuracy is not None else NONE,
        verdict=level_verdict(level, group),
        look="best" if level.label == group.best else "doubt" if level.label in group.unfair else "",
    )
