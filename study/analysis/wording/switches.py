"""What each switch buys, in words."""

from study.analysis.answers.switches import Effect, Interaction, Switches
from study.analysis.words import number, place_words, short_key


def effect_label(effect: Effect, several: bool) -> str:
    """Return the name of a switch's level; with its first level where the switch has ``several`` others."""
    key = short_key(effect.factor)
    name = effect.level if key in effect.level else f"{key} {effect.level}"
    return f"{name} over {effect.base}" if several else name


def effect_sentence(effect: Effect) -> str:
    """Return what a level of a switch buys, in time, accuracy, memory and energy."""
    times = effect.times_as_fast
    what = f"{short_key(effect.factor)}: {effect.level} in place of {effect.base}"
    if times.low is None or times.high is None:
        told = f"{number(times.value)} times as fast, without an interval"
    elif times.low <= 1 <= times.high:
        told = f"no difference shown ({_times(effect)})"
    elif times.value > 1:
        told = f"{number(times.value)} times as fast ({number(times.low)} to {number(times.high)})"
    else:
        told = f"slower: {number(times.value)} times as fast ({number(times.low)} to {number(times.high)})"
    return f"{what[0].upper()}{what[1:]}: {told}{_beside(effect)}."


def _times(effect: Effect) -> str:
    times = effect.times_as_fast
    return f"{number(times.value)} times as fast, {number(times.low or 0)} to {number(times.high or 0)}"


def _beside(effect: Effect) -> str:
    """Return what else changes with it, as far as it is known, and in how many settings."""
    told = [
        _change(effect, "accuracy", None if effect.accuracy is None else _signed(100 * effect.accuracy, 1, " points")),
        *(
            _change(effect, name, None if ratio is None else _signed(100 * (ratio - 1), 0, "%"))
            for name, ratio in (("memory", effect.memory), ("energy", effect.energy))
        ),
    ]
    return "".join(f"{', ' if at else '; '}{words}" for at, words in enumerate(filter(None, told)))


def _signed(value: float, digits: int, unit: str) -> str:
    """Return a change with its sign; one that is rounded to zero has none."""
    return f"{value:+.{digits}f}{unit}" if round(value, digits) else "unchanged"


def _change(effect: Effect, name: str, change: str | None) -> str | None:
    """Return the words about one quantity; None if no run of the group knows it."""
    known = effect.known.get(name, effect.settings if change else 0)
    if change is None:
        return f"{name} not compared (known in {known} of {effect.settings} pairs)" if name in effect.known else None
    return f"{name} {change}" + ("" if known == effect.settings else f" (in {known} of {effect.settings} pairs)")


def interaction_sentence(found: Interaction) -> str:
    """Return how two switches depend on each other."""
    more = found.more
    way = "more" if more.value > 1 else "less"
    return (
        f"{found.first.label} and {found.second.label} together buy {way} than each by itself: {number(more.value)} "
        f"times ({number(more.low or 0)} to {number(more.high or 0)}) the product of the two."
    )


def switch_sentences(switches: Switches) -> list[str]:
    """Return the effects of one group, and the pairs of switches that depend on each other."""
    place = f"{place_words(switches.group)}. "
    effects = [effect_sentence(effect) for effect in switches.effects]
    return [place + effects[0], *effects[1:], *map(interaction_sentence, switches.interactions)] if effects else []
