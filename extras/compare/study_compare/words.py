"""Results side by side, as text for a terminal: the verdict first, then each setting, then what
differs."""

from collections.abc import Iterator, Mapping, Sequence

from study.analysis.answers.context import bounds
from study.analysis.words import listed, number, short
from study.artifacts.plan import aligned
from study.base.errors import quantity
from study_compare.side import PHASES, STATES, Stand
from study_compare.statistics import Compared, Margin, Pair, Ranking

LEAST_SHARE = 0.05
"""Share of the whole difference from which a phase is named."""


def answer_of(pair: Pair) -> str:
    """Return what the second result is beside the first, over all settings and in how many of them;
    and whether one of them learns less."""
    return f"{_times(pair)}{_settings(pair)}{''.join(_learns(pair))}."


def _times(pair: Pair) -> str:
    ratio, verdict = pair.overall.ratio, pair.overall.verdict
    long = f"{short(ratio.value)} times as long{bounds(ratio)}"
    if verdict == "equivalent":
        return f"{pair.second} and {pair.first} are equal within {_percent(pair.margin)}: {long}"
    if verdict == "not_enough_starts":
        return f"{pair.second} and {pair.first} are tied: {long}"
    if verdict == "mixed":
        return (
            f"Which of {pair.first} and {pair.second} is faster depends on the setting: "
            f"over all {long}"
        )
    if verdict == "faster":
        times = ratio.inverse
        return f"{pair.second} is {short(times.value)} times as fast as {pair.first}{bounds(times)}"
    return f"{pair.second} takes {short(ratio.value)} times as long as {pair.first}{bounds(ratio)}"


def _settings(pair: Pair) -> str:
    """Return in how many settings the second result differs by itself."""
    count, verdict = len(pair.settings), pair.overall.verdict
    shown = {
        word: sum(one.verdict == word for one in pair.settings) for word in ("faster", "slower")
    }
    if verdict == "mixed":
        parts = [f"{pair.second} is {word} in {many}" for word, many in shown.items() if many]
        return f"; {listed(parts)} of {count} settings"
    if verdict not in shown or count < 2:
        return ""
    alike = shown.pop(verdict)
    ((opposite, other),) = shown.items()
    return f"; by itself in {alike} of {count} settings" + f", and {opposite} in {other}" * bool(
        other
    )


def _learns(pair: Pair) -> Iterator[str]:
    """Yield which result learns less, where one does, and at which settings."""
    stands: dict[Stand, str] = {
        "less": "learns less",
        "unclear": "may learn less, which is not shown",
    }
    for place, name in enumerate((pair.first, pair.second)):
        for stand, words in stands.items():
            fell = [one for one in pair.settings if one.learning[place] == stand]
            if fell:
                first, *rest = [
                    f"{one.setting}: {_accuracy(one.accuracies[place])} and not "
                    f"{_accuracy(one.accuracies[1 - place])}"
                    for one in fell
                ]
                more = f", and at {quantity(len(rest), 'other setting')}" if rest else ""
                yield f"; but {name} {words} (accuracy at {first}{more})"


def verdict_word(found: Compared, margin: float) -> str:
    """Return the verdict in the words of every report, with less learning where it is shown."""
    words = {"equivalent": f"equal within {_percent(margin)}", "not_enough_starts": "tied"}
    ours, theirs = found.learning
    less = ", learns less" * (theirs == "less") + ", learns more" * (ours == "less")
    return words.get(found.verdict, found.verdict) + less


def verdict_lines(pair: Pair) -> list[str]:
    """Return the sentence that answers, and what it rests on."""
    return [answer_of(pair), _starts(pair)]


def _starts(pair: Pair) -> str:
    counts = (
        f"{pair.first} has {quantity(pair.starts[0], 'start')}, {pair.second} "
        f"{quantity(pair.starts[1], 'start')}"
    )
    spreads = [f"{100 * one:.2g}%" for one in pair.spreads]
    guessed = [one for one, assumed in zip(spreads, pair.assumed, strict=True) if assumed]
    if guessed:
        assumed = " and ".join(dict.fromkeys(guessed))
        return (
            f"{counts}: fewer than three hardly tell how far starts differ, and {assumed} "
            "is assumed."
        )
    return f"{counts}, which differ among each other by {' and '.join(spreads)}."


def _bounds(found: Compared) -> str:
    low, high = found.ratio.low, found.ratio.high
    return "no interval" if low is None or high is None else f"95%: {number(low)} to {number(high)}"


def margin_line(margin: Margin) -> str:
    """Return where the margin of equivalence comes from, and each plan that has another one."""
    value = _percent(margin.value)
    first, *_ = margin.planned
    if margin.source == "command_line":
        planned = listed([f"{_percent(one)} ({name})" for name, one in margin.planned.items()])
        return (
            f"The margin of {value} was given on the command line, after the data were "
            f"there; planned: {planned}."
        )
    others = [
        f"{_percent(one)} ({name})" for name, one in margin.planned.items() if one != margin.value
    ]
    told = (
        f"The margin of {value} is the study's own, by the plan of {first}, which a start "
        "writes before its runs"
    )
    return f"{told}; other plans have another: {listed(others)}." if others else f"{told}."


def _accuracy(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


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
            verdict_word(found, pair.margin),
            " and ".join(map(str, found.runs)),
            " and ".join(map(_accuracy, found.accuracies)),
        )
        for found in pair.settings
    ]
    return _table([head, *rows])


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"  {line}" for line in aligned(rows)]


def reasons(pair: Pair) -> list[str]:
    """Return in which phases the difference lies, over all and at each setting, and what the
    machine tells."""
    told = []
    if parts := _parts(pair.overall):
        told.append(f"Where the difference lies, mean of a run: {parts}.")
    for name, ratio in pair.overall.states.items():
        told.append(f"The {STATES[name]}: {number(ratio)} times that of {pair.first}.")
    each = [
        (f"{found.setting}:", _parts(found)) for found in pair.settings if len(pair.settings) > 1
    ]
    if rows := [row for row in each if row[1]]:
        told += [
            "Where it lies at each setting that differs, with what the machine told of "
            "itself then:",
            *_table(rows),
        ]
    return told


def _parts(found: Compared) -> str:
    """Return the phases in which a difference lies that is found, the longest first; nothing where
    none is."""
    whole = sum(found.phases.values())
    if found.verdict not in ("faster", "slower") or not whole:
        return ""
    parts = sorted(found.phases.items(), key=lambda item: -abs(item[1]))
    named = [
        f"{PHASES[name]} {seconds:+.3g} s"
        for name, seconds in parts
        if abs(seconds) >= LEAST_SHARE * abs(whole)
    ]
    if found.setting is not None:
        named += [f"{STATES[name]} {number(ratio)} times" for name, ratio in found.states.items()]
    return listed(named)


def ranking_lines(ranking: Ranking) -> list[str]:
    """Return the order of three or more results."""
    best = listed(ranking.may_be_fastest)
    rows = [(name, f"{number(ranking.times[name])} times the fastest") for name in ranking.order]
    less = f" Shown to learn less: {listed(ranking.learn_less)}." if ranking.learn_less else ""
    return [f"May be the fastest (95%): {best}.{less}", *_table(rows)]


def differences_table(names: Sequence[str], differs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what machine and software differ in, a row a fact."""
    if not differs:
        return ["Machine and software are the same, as far as the records tell."]
    return [
        "What differs:",
        *_table([("", *names), *((key, *values) for key, values in differs.items())]),
    ]
