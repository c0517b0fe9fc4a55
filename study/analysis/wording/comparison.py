"""Results side by side, as text for a terminal: the verdict first, then each setting, then what differs."""

from collections.abc import Mapping, Sequence

from study.analysis.stats.comparison import PHASES, STATES, Compared, Pair, Ranking, Verdict
from study.analysis.words import agreeing, listed, number

VERDICTS: dict[Verdict, str] = {
    "faster": "faster",
    "slower": "slower",
    "equivalent": "equivalent",
    "not_enough_starts": "not enough starts",
}
LEAST_SHARE = 0.05
"""Share of the whole difference from which a phase is named."""


def verdict_lines(pair: Pair, total: str) -> list[str]:
    """Return the sentence that answers, and what it rests on."""
    found, between = pair.overall, f"{_interval(pair.overall)} times those of {pair.first}"
    margin = f"{100 * pair.margin:.3g}%"
    said = {
        "faster": f"{pair.second} is faster than {pair.first}",
        "slower": f"{pair.second} is slower than {pair.first}",
        "equivalent": f"{pair.second} is equivalent to {pair.first} within {margin}",
        "not_enough_starts": f"Not enough starts to tell {pair.second} from {pair.first}",
    }
    return [f"{said[found.verdict]}: its times ({total}) are {between}.", *_starts(pair, margin)]


def _starts(pair: Pair, margin: str) -> list[str]:
    counts = f"{pair.first} has {_counted(pair.starts[0])}, {pair.second} {_counted(pair.starts[1])}"
    spread = f"{100 * pair.spread:.2g}%"
    told = (
        f"{counts}: how much a second start would change is not known, and {spread} is assumed."
        if pair.assumed
        else f"{counts}, which differ among each other by {spread}."
    )
    if pair.starts_needed is None:
        return [f"{told} More than a hundred starts of each would be needed to tell a difference of {margin}."]
    if pair.starts_needed > min(pair.starts):
        return [
            f"{told} {pair.starts_needed} starts of each tell a difference of {margin} in four of five comparisons."
        ]
    return [told]


def _counted(starts: int) -> str:
    return f"{starts} {agreeing(starts, 'start', 'starts')}"


def _interval(found: Compared) -> str:
    return f"{number(found.ratio.value)} ({_bounds(found)})"


def _bounds(found: Compared) -> str:
    low, high = found.ratio.low, found.ratio.high
    return "no interval" if low is None or high is None else f"95%: {number(low)} to {number(high)}"


def settings_table(pair: Pair) -> list[str]:
    """Return one row for each setting, aligned."""
    head = ("setting", "ratio", "all at once", "verdict", "runs", "accuracy")
    rows = [
        (
            str(found.setting),
            number(found.ratio.value),
            _bounds(found),
            VERDICTS[found.verdict],
            " and ".join(map(str, found.runs)),
            " and ".join("-" if one is None else f"{one:.1%}" for one in found.accuracies),
        )
        for found in pair.settings
    ]
    return aligned([head, *rows])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines whose columns begin at the same place."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(["", *(cell.ljust(width) for cell, width in zip(row, widths, strict=True))]).rstrip() for row in rows
    ]


def reasons(pair: Pair) -> list[str]:
    """Return in which phases the difference lies, and what the machine tells of itself."""
    told = []
    whole = sum(pair.phases.values())
    parts = sorted(pair.phases.items(), key=lambda item: -abs(item[1]))
    named = [
        f"{PHASES[name]} {seconds:+.3g} s"
        for name, seconds in parts
        if whole and abs(seconds) >= LEAST_SHARE * abs(whole)
    ]
    if named and pair.overall.verdict in ("faster", "slower"):
        told.append(f"Where the difference lies, mean of a run: {listed(named)}.")
    for name, ratio in pair.states.items():
        told.append(f"The {STATES[name]}: {number(ratio)} times that of {pair.first}.")
    return told


def ranking_lines(ranking: Ranking) -> list[str]:
    """Return the order of three or more results."""
    best = listed(ranking.may_be_fastest)
    rows = [(name, f"{number(ranking.times[name])} times the fastest") for name in ranking.order]
    return [f"May be the fastest (95%): {best}.", *aligned(rows)]


def differences_table(names: Sequence[str], differs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what machine and software differ in, a row a fact."""
    if not differs:
        return ["Machine and software are the same, as far as the records tell."]
    return ["What differs:", *aligned([("", *names), *((key, *values) for key, values in differs.items())])]
