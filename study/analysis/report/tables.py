"""The tables below the first screen: the settings in five columns, and what their runs need."""

from collections.abc import Callable
from dataclasses import dataclass

from study.analysis.answers.fastest import level_verdict
from study.analysis.answers.group import Group, Level
from study.analysis.stats.equivalence import Sensitivity
from study.analysis.words import bytes_words, listed, number, three_digits
from study.artifacts import timing

NONE = "\N{EN DASH}"


@dataclass(frozen=True)
class LevelRow:
    """One setting."""

    label: str
    time: str
    interval: str
    """In brackets; empty where there is none."""
    times_best: str
    accuracy: str
    verdict: str
    look: str
    """``best``, ``doubt`` or nothing: how the row is marked, beside its words."""


def level_row(level: Level, group: Group) -> LevelRow:
    """Return one row of the table of a group's settings."""
    best = next((one.time.value for one in group.levels if one.label == group.best and one.time), None)
    time = level.time
    margin = group.sensitivity.margin if group.sensitivity else 0.05
    return LevelRow(
        label=level.label,
        time=three_digits(time.value) if time else NONE,
        interval=""
        if time is None or time.low is None or time.high is None
        else f"({three_digits(time.low)} to {three_digits(time.high)})",
        times_best=f"{time.value / best:.2f}x" if time and best else NONE,
        accuracy=f"{100 * level.accuracy:.1f}%" if level.accuracy is not None else NONE,
        verdict=level_verdict(level, group, margin),
        look="best" if level.label == group.best else "doubt" if level.label in group.unfair else "",
    )


def sensitivity_words(found: Sensitivity) -> str:
    """Return what a study of this size could have seen, and what varied."""
    margin = "no number of blocks up to 1000 finds" if found.blocks_for_margin is None else "would have shown:"
    if found.smallest_ratio > 1 + found.margin and found.blocks_for_margin:
        margin = f"{found.blocks_for_margin} blocks (`replicates`) find"
    names = {"noise": "runs of a block", "block": "blocks of a start", "start": "starts"}
    apart = listed([f"{names[name]} by {100 * spread:.2g}%" for name, spread in found.spreads.items()])
    return (
        f"In 4 of 5 studies of {found.blocks} blocks like these, a ratio of two settings is found from "
        f"{found.smallest_ratio:.3g} on; {margin} a difference of {found.margin:.0%}. Apart: {apart}."
    )


SHOW: dict[timing.Shown, Callable[[float], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "number": number,
    "percent": lambda value: f"{value:.0f}%",
    "share": lambda value: f"{100 * value:.3g}%",
    "bytes": bytes_words,
    "milli": lambda value: number(value * 1e3),
}


@dataclass(frozen=True)
class Shown:
    """One row of the page's table: an entry of ``Level.resources``, its heading, and the function that words it."""

    key: str
    words: str
    show: Callable[[float], str]


def resources(group: Group) -> list[Shown]:
    """Return the rows of which any level of ``group`` has a value, in the order of the table of timings."""
    many = any(level.resources.get("replicas", 1) > 1 for level in group.levels)
    return [
        Shown(key, resource.heading, SHOW[resource.shown])
        for key, resource in timing.resources().items()
        if any(key in level.resources for level in group.levels) and (many or not resource.shared)
    ]
