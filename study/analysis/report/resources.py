"""How the page shows a group's resources, which :mod:`study.artifacts.timing` declares, beside its times."""

from collections.abc import Callable
from dataclasses import dataclass

from study.analysis.stats.analysis import Group
from study.analysis.words import bytes_words, number
from study.artifacts import timing

SHOW: dict[timing.Shown, Callable[[float], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "number": number,
    "percent": lambda value: f"{value:.0f}%",
    "share": lambda value: f"{100 * value:.3g}%",
    "bytes": bytes_words,
    "giga": lambda value: number(value / 1e9),
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
