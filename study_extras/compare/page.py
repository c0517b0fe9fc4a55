"""The first screen of a comparison: rows are settings, and the axis is the new time over the old one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from study.analysis.figures.marks import Look, Row
from study.analysis.figures.rows import Group, RowsChart, rows_chart
from study.analysis.figures.svg import Chart
from study.analysis.report.step import stylesheet, templates
from study.analysis.words import listed
from study.base.errors import quantity
from study.base.files import write_whole
from study_extras.compare.statistics import Compared, Pair
from study_extras.compare.step import Compared as Comparison
from study_extras.compare.words import answer_of, verdict_word

MACHINE = ("device", "processor", "logical CPUs")
"""Facts of which one is another machine."""


@dataclass(frozen=True)
class Screen:
    """What the page shows of two results of one study."""

    study: str
    first: str
    second: str
    differs: str
    answer: str
    job: list[str]
    chart: Chart | None
    next: str


def write_page(found: Sequence[Comparison], output: Path) -> None:
    """Write the page of every study's comparisons to ``output``: one file that asks the network for nothing."""
    screens = [screen_of(one, pair) for one in found for pair in one.pairs]
    text = (
        templates("study_extras.compare")
        .get_template("comparison.html.j2")
        .render(
            comparisons=screens,
            heading=f"{listed(sorted({one.study for one in screens}))}: results compared",
            tag="h1" if len(screens) == 1 else "h2",
            style=stylesheet(),
        )
    )
    write_whole(output, text)


def screen_of(found: Comparison, pair: Pair) -> Screen:
    """Return the first screen of one pair of results."""
    starts = zip((pair.first, pair.second), pair.starts, strict=True)
    other = [key for key in MACHINE if key in found.differs]
    return Screen(
        study=found.study,
        first=pair.first,
        second=pair.second,
        differs=f"Different machines: {listed(other)} differ, so the ratio is theirs, too." if other else "",
        answer=answer_of(pair),
        job=[f"{name}: {quantity(count, 'start')}" for name, count in starts],
        chart=_chart(pair),
        next=_next(pair),
    )


def _chart(pair: Pair) -> Chart | None:
    rows = tuple(_row(one, verdict_word(one, pair.margin)) for one in pair.settings)
    words = f"Time of {pair.second} over time of {pair.first}, on a logarithmic axis"
    key = {"mean": "ratio, 95% interval", "bare": "ratio, no interval"}
    title = "Each setting, new over old"
    return rows_chart(
        RowsChart((Group(rows),), title, words, headings=("", "ratio", "verdict"), axis="ratio", unit="", key=key)
    )


def _row(found: Compared, verdict: str) -> Row:
    ratio = found.ratio
    look: Look = "answer" if found.verdict == "faster" and found.learning[1] != "less" else "other"
    return Row(found.setting or "", mean=ratio.value, low=ratio.low, high=ratio.high, look=look, verdict=verdict)


def _next(pair: Pair) -> str:
    more = pair.overall.more
    if more is None or more.starts is None:
        return ""
    gain = "tell how far starts differ" if more.test == "spread" else "settle it in 4 of 5 such comparisons"
    return f"{quantity(more.starts, 'more start')} of each would {gain}."
