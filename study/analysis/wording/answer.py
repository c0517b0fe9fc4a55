"""The answer to a study's question, in words."""

from collections.abc import Sequence
from functools import singledispatch

from study.analysis.stats import findings
from study.analysis.stats.findings import Answer, Difference, RatioAt
from study.analysis.stats.usable import Estimate
from study.analysis.wording.verdict import verdict_sentence
from study.analysis.words import (
    accuracy_words,
    agreeing,
    briefly,
    device_words,
    group_names,
    listed,
    number,
    on_device,
    place_words,
    setting_words,
    short_key,
)
from study.artifacts.setting import Setting, level_words

DIFFERENCES = {
    "threads": "use the same number of CPU threads",
    "workers": "use the same number of loader workers",
    "precision": "compute in the same precision",
    "images": "train on the same number of images",
    "accuracy": "reach the same accuracy",
}
"""What the sides of a contrast did not do alike, after "did not"."""


@singledispatch
def answer_sentence(answer: Answer) -> str:
    """Return one statement of the answer as sentences."""
    raise NotImplementedError(f"no sentence for {type(answer).__name__}")


@answer_sentence.register
def _nothing_succeeded(answer: findings.NothingSucceeded) -> str:
    if answer.group is None:
        return "No run has succeeded yet, so there is no answer."
    return f"{on_device(answer.group)} no run has succeeded."


@answer_sentence.register
def _ways(answer: findings.Ways) -> str:
    first = answer.ways[0]
    return f"The fastest of all is {way_name(answer, first)}, {number(first.seconds)} s; {others_sentence(answer)}"


def others_sentence(answer: findings.Ways) -> str:
    """Return how much longer the best of the other groups take, and which group has no answer."""
    told = [
        f"{way_name(answer, way)} takes {number(way.times.value)} times{interval_words(way.times)}"
        for way in answer.ways
        if way.times
    ]
    lost = f" {on_device(*answer.without)} there is no answer." if answer.without else ""
    return f"{listed(told)} as long.{lost}"


def way_name(answer: findings.Ways, way: findings.Way) -> str:
    """Return the fastest level of a group, after what tells the group from the others."""
    groups = dict.fromkeys([answer.base, *(one.group for one in answer.ways), *answer.without])
    return f"{place_words(group_names(list(groups))[way.group])}, {_level(way.factor, way.level.label)}"


def interval_words(times: Estimate) -> str:
    """Return the interval of a time or a ratio, to follow its value; nothing where there is none."""
    return "" if times.low is None or times.high is None else f" (95%: {number(times.low)} to {number(times.high)})"


@answer_sentence.register
def _combination(answer: findings.Combination) -> str:
    times = answer.times_as_fast
    return (
        f"{on_device(answer.group)} {answer.best.label} trains {number(times.value)} times{interval_words(times)} as "
        "fast as the first level of every switch."
    )


@answer_sentence.register
def _only_level(answer: findings.OnlyLevel) -> str:
    return f"{on_device(answer.group)} it takes {_seconds(answer.time)}{accuracy_words(answer.accuracy)}."


@answer_sentence.register
def _cannot_say(answer: findings.CannotSay) -> str:
    levels = {
        reason: [level for level in answer.reasons if answer.reasons[level] == reason]
        for reason in dict.fromkeys(answer.reasons.values())
    }
    told = "; ".join(
        f"{briefly(_levels(answer.factor, names))} {_why(reason, len(names))}" for reason, names in levels.items()
    )
    count = answer.more_runs or 0
    more = f"make at least {count} more run{'s' * (count > 1)} of each setting (`replicates`) on a quiet machine"
    todo = more if count else TRAIN
    what = "how long it takes" if answer.only else "which is the fastest"
    return f"{on_device(answer.group)} it cannot be said {what}: {told}. To decide it, {todo}."


WHY = {
    "few_runs": ("has", "have", "fewer than three clean runs"),
    "one_block": ("has", "have", "all runs in one block"),
    "outside_runs": ("has", "have", "a mean outside the own runs, which met another state of the machine"),
    "wide_interval": ("has", "have", "an interval of the mean wider than a factor of ten"),
    "not_learned": ("is", "are", "not shown to have learned"),
    "censored": ("missed", "missed", "the target accuracy"),
}
"""What stands in the way of an answer: the verb after one name, after several, and the rest."""


def _why(reason: str, count: int) -> str:
    one, many, rest = WHY[reason]
    return f"{agreeing(count, one, many)} {rest}"


TRAIN = "let the settings train until all have learned (`training.epochs`)"


def _levels(factor: str | None, levels: Sequence[str]) -> list[str]:
    return [_level(factor, levels[0]), *levels[1:]]


@answer_sentence.register
def _fastest(answer: findings.Fastest) -> str:
    if answer.machine:
        return f"{on_device(answer.group)} it cannot be said which is the fastest: {_machine(answer)}."
    time = f"{_seconds(answer.time)}{accuracy_words(answer.accuracy)}"
    law = f" {verdict_sentence(answer.curve)}" if answer.curve else ""
    fastest = f"{on_device(answer.group)} the fastest is {_level(answer.factor, answer.level.label)}, {time}"
    return f"{fastest}; {'; '.join(_beside(answer))}.{law}"


def _machine(answer: findings.Fastest) -> str:
    """Return why the machine's change leaves no answer."""
    changed = f"the machine itself changed by {answer.machine_change or 1:.1f}x during these runs"
    if answer.machine == "explains":
        return (
            f"{changed}, and no difference between the settings is left once the reference workload accounts for that"
        )
    return f"{changed}, and they are too few to tell its part in the differences between the settings"


def known_ties(answer: findings.Fastest) -> list[str]:
    """Return the levels that are said to be tied: those whose own time is known, or all where none of them is."""
    return [level for level in answer.tied if level not in answer.left_out] or answer.tied


def _beside(answer: findings.Fastest) -> list[str]:
    """Return what is said of the other settings."""
    told, tied = [], known_ties(answer)
    if tied:
        told.append(f"the data do not separate {briefly(tied)} from it")
    if same := [level for level in answer.tied if level in answer.equivalent]:
        told.append(f"{briefly(same)} {agreeing(len(same), 'takes', 'take')} the same time within the study's margin")
    if answer.slower and not answer.tied:
        who = f"{briefly(answer.slower)} {agreeing(len(answer.slower), 'is', 'are')}"
        if not (answer.left_out or answer.unfair or answer.missing):
            who = "every other setting is"
        told.append(f"{who} slower by more than the noise between runs")
    told += filter(None, (behind_sentence(answer), unknown_sentence(answer)))
    if answer.missing:
        told.append(f"{briefly(answer.missing)} {agreeing(len(answer.missing), 'has', 'have')} no run that counts")
    for reason, words in (("not_learned", "not shown to have learned as well"), ("censored", "missed the target")):
        if names := [level for level, why in answer.unfair.items() if why == reason]:
            told.append(f"no candidate{'s' * (len(names) > 1)}, because {words}: {briefly(names)}")
    return told or ["no other setting can be compared with it"]


def behind_sentence(answer: findings.Fastest) -> str:
    """Return which levels are slower by an amount that is not determined; nothing where there is none."""
    behind = [level for level in _left_out(answer) if level not in answer.tied]
    verb = agreeing(len(behind), "is", "are")
    return f"{briefly(behind)} {verb} slower, too: the runs do not determine by how much" if behind else ""


def unknown_sentence(answer: findings.Fastest) -> str:
    """Return which levels may be as fast for all that is known of their times; nothing where there is none."""
    unknown = [level for level in _left_out(answer) if level in answer.tied]
    return f"the time of {briefly(unknown)} is not determined" if unknown else ""


def _left_out(answer: findings.Fastest) -> list[str]:
    return [level for level in answer.left_out if level not in known_ties(answer)]


def _seconds(time: Estimate) -> str:
    """Return a time with its interval."""
    return f"{number(time.value)} s{interval_words(time)}"


def _level(factor: str | None, level: str) -> str:
    return f"{short_key(factor)} {level}" if factor else level


@answer_sentence.register
def _contrast(answer: findings.Contrast) -> str:
    text = f"{_over(answer)} is"
    if answer.least == answer.most:
        text = f"{text} {_ratio(answer.least, True)}."
    else:
        text = f"{text} between {_ratio(answer.least, False)} and {_ratio(answer.most, False)}."
    return " ".join([text, *_doubts(answer)])


@answer_sentence.register
def _no_ratio(answer: findings.NoRatio) -> str:
    return f"{_over(answer)} cannot be said: no block holds a run of each side at one setting."


def _over(answer: findings.Contrast | findings.NoRatio) -> str:
    """Return the two sides of a contrast, to begin a sentence."""
    if answer.contrast == "device":
        slower, faster = device_words(answer.slower, article=True), device_words(answer.faster, article=True)
        return f"The time on {slower} over the time on {faster}"
    return f"The time with {short_key(answer.contrast)} {answer.slower} over that with {answer.faster}"


def _ratio(ratio: RatioAt, alone: bool) -> str:
    """Return a ratio with its interval, its two times and its setting; one of several has bounds that hold for all."""
    value = ratio.ratio if alone else ratio.together
    bounds = f"95%: {value.low:.3g} to {value.high:.3g}; " if value.low is not None else "no interval; "
    times = f"{number(ratio.slower_seconds)} s over {number(ratio.faster_seconds)} s"
    return f"{number(value.value)} ({bounds}{times}){_at([ratio.at])}"


def _doubts(answer: findings.Contrast) -> list[str]:
    """Return why the two times may not be of the same work, or not of the same machine."""
    found = [f"There is no ratio{_at(answer.alone)}: no block holds a run of each side."] if answer.alone else []
    found += [_difference(differs) for differs in answer.differs]
    if answer.explained:
        found.append(
            f"No difference is left{_at(answer.explained)} once the reference workload accounts for the machine's own "
            f"change."
        )
    if answer.unclear:
        found.append(
            f"The machine itself changed{_at(answer.unclear)}, and the runs are too few to tell its part: no "
            "conclusion."
        )
    return found


def _difference(differs: Difference) -> str:
    sides = f"{_side(differs.what, differs.slower)} and {_side(differs.what, differs.faster)}"
    return f"They did not {DIFFERENCES[differs.what]}: {sides}{_at([differs.at])}."


def _side(what: str, value: str | float) -> str:
    """Return one side of a difference in words."""
    if isinstance(value, str):
        return value
    return f"{value:.0%}" if what == "accuracy" else f"{value:.0f}" if what == "images" else f"{value:.6g}"


def _at(settings: Sequence[Setting]) -> str:
    """Return ``at`` with the settings, and nothing where they are not told apart."""
    return f" at {listed([setting_words(setting.levels) for setting in settings])}" if settings[0].levels else ""


@answer_sentence.register
def _bottleneck(answer: findings.Bottleneck) -> str:
    loader, training = answer.loader_seconds, answer.training_seconds
    text = (
        f"{_where(answer.at)} loader alone takes {number(loader)} s, training on images that lie on the device "
        f"{number(training)} s, and both together {number(answer.both_seconds)} s (validation apart): "
    )
    if answer.limit == "both":
        return f"{text}they hold each other up, on the same processors or by turns, and neither alone limits the run."
    if answer.limit == "loader":
        return f"{text}the loader limits the run; the training could go {number(loader / training)} times as fast."
    if answer.limit == "training":
        return f"{text}the training limits the run; the loader could deliver {number(training / loader)} times as fast."
    return f"{text}the data do not show which of the two limits the run."


def _where(at: Setting) -> str:
    words = [
        device_words(str(level), article=True) if key == "device" else f"{short_key(key)} {level_words(key, level)}"
        for key, level in at.levels.items()
    ]
    return f"On {', '.join(words)} the" if "device" in at.levels else f"With {', '.join(words)} the" if words else "The"


@answer_sentence.register
def _null_control(answer: findings.NullControl) -> str:
    text = (
        "Null control: each configuration was run twice, as if it were two. The ratio of the two is furthest from 1"
        f"{_at([answer.at])}, with {answer.ratio:.3g}; "
    )
    if not answer.intervals:
        return f"{text}without replicates there is no interval."
    if not answer.outside:
        return f"{text}no interval excludes 1."
    return f"{text}{answer.outside} of {answer.intervals} intervals exclude 1, where one in twenty is to be expected."
