"""Results side by side, as text for a terminal: the verdict first, then each setting, then what differs."""

from collections.abc import Mapping, Sequence

from study.analysis.words import agreeing, listed, number
from study_extras.compare.more_starts import MOST_MORE, More
from study_extras.compare.statistics import PHASES, STATES, Compared, Margin, Pair, Ranking, Verdict

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
    margin = _percent(pair.margin)
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
    more = pair.overall.more
    return [told, *([] if more is None else [_more(more, margin)])]


def _more(more: More, margin: str) -> str:
    """Return how many more starts would tell, and what they would."""
    aim = f"show that they are equivalent within {margin}" if more.test == "equivalence" else "show which is faster"
    if more.starts is None:
        return f"More than {MOST_MORE} more starts of each would be needed to {aim}."
    return (
        f"{_counted(more.starts, 'more ')} of each would {aim}, in four of five comparisons, if the ratio and the "
        "spread stay as they are."
    )


def _verdict(found: Compared) -> str:
    more = found.more
    if more is None:
        return VERDICTS[found.verdict]
    count = f"{more.starts}" if more.starts else f"over {MOST_MORE}"
    return f"{VERDICTS[found.verdict]}: {count} more of each"


def _counted(starts: int, kind: str = "") -> str:
    return f"{starts} {kind}{agreeing(starts, 'start', 'starts')}"


def _interval(found: Compared) -> str:
    return f"{number(found.ratio.value)} ({_bounds(found)})"


def _bounds(found: Compared) -> str:
    low, high = found.ratio.low, found.ratio.high
    return "no interval" if low is None or high is None else f"95%: {number(low)} to {number(high)}"


def margin_line(margin: Margin) -> str:
    """Return where the margin of equivalence comes from, and each plan that has another one."""
    value = _percent(margin.value)
    first, *_ = margin.planned
    if margin.source == "command_line":
        planned = listed([f"{_percent(one)} ({name})" for name, one in margin.planned.items()])
        return f"The margin of {value} was given on the command line, after the data were there; planned: {planned}."
    others = [f"{_percent(one)} ({name})" for name, one in margin.planned.items() if one != margin.value]
    told = f"The margin of {value} is the study's own, by the plan of {first}, which a start writes before its runs"
    return f"{told}; other plans have another: {listed(others)}." if others else f"{told}."


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def settings_table(pair: Pair) -> list[str]:
    """Return one row for each setting, aligned."""
    head = ("setting", "ratio", "all at once", "verdict", "runs", "accuracy")
    rows = [
        (
            str(found.setting),
            number(found.ratio.value),
            _bounds(found),
            _verdict(found),
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
    """Return in which phases the difference lies, over all and at each setting, and what the machine tells."""
    told = []
    if parts := _parts(pair.overall):
        told.append(f"Where the difference lies, mean of a run: {parts}.")
    for name, ratio in pair.overall.states.items():
        told.append(f"The {STATES[name]}: {number(ratio)} times that of {pair.first}.")
    each = [(f"{found.setting}:", _parts(found)) for found in pair.settings if len(pair.settings) > 1]
    if rows := [row for row in each if row[1]]:
        told += [
            "Where it lies at each setting that differs, with what the machine told of itself then:",
            *aligned(rows),
        ]
    return told


def _parts(found: Compared) -> str:
    """Return the phases in which a difference lies that is found, the longest first; nothing where none is."""
    whole = sum(found.phases.values())
    if found.verdict not in ("faster", "slower") or not whole:
        return ""
    parts = sorted(found.phases.items(), key=lambda item: -abs(item[1]))
    named = [f"{PHASES[name]} {seconds:+.3g} s" for name, seconds in parts if abs(seconds) >= LEAST_SHARE * abs(whole)]
    if found.setting is not None:
        named += [f"{STATES[name]} {number(ratio)} times" for name, ratio in found.states.items()]
    return listed(named)


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
