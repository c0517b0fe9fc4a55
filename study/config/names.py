"""What people call a setting: the names that a study gives, and the words for its levels."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from study.base.errors import ValueRefused, check_known
from study.config.settings import known, leaf_words

APART = (", ", " + ")
"""What parts the levels in a label."""
LONGEST = 40
"""Letters of a name."""


def level_words(key: str, level: Any) -> str:
    """Return one level in words, whether it is the level itself or as tables show it."""
    text = _text(key, level)
    return _words(key).get(text, f"no {leaf_words(key)}" if level is None else text)


def _text(key: str, level: Any) -> str:
    if isinstance(level, bool):
        return switch_words(key, level)
    if isinstance(level, float) and float(f"{level:g}") == level:
        return f"{level:g}"
    return str(level)


@cache
def _words(key: str) -> dict[str, str]:
    """Return the words of a key's levels, by the levels as tables show them."""
    return {_text(key, level): words for level, words in known(key).words.items()}


def switch_words(key: str, on: bool) -> str:
    """Return the name of a switch that is on, or `no` and its name."""
    return f"{'' if on else 'no '}{leaf_words(key)}"


Names = Mapping[str, Mapping[str, Any]]
"""Names of settings, each with the levels that it stands for, by the keys of their factors."""
Factors = Mapping[str, Sequence[Any]]
"""Levels by the keys of their factors."""
Only = Sequence[Mapping[str, Any]]
"""The levels of each setting that a study runs, where it does not run all."""


def check(names: Names, factors: Factors, only: Only) -> None:
    """Raise :class:`ValueRefused` for the first name that cannot be told from another one or from a
    level's words."""
    words = {}
    for key, own in factors.items():
        for level in own:
            words[level_words(key, level)] = f"{key} {level}"
    seen: dict[frozenset[tuple[str, Any]], str] = {}
    for name, levels in whole(names, factors, only).items():
        if not name.strip() or len(name) > LONGEST or any(mark in name for mark in APART):
            allowed = f"1 to {LONGEST} letters, without{' or'.join(f' {mark!r}' for mark in APART)}"
            raise ValueRefused(key="names", value=name, allowed=allowed)
        if name in words:
            raise ValueRefused(key="names", value=name, why=f"the level {words[name]} is called so")
        if not levels:
            raise ValueRefused(
                key=f"names.{name}", value={}, allowed="at least one level of a factor"
            )
        for key, level in levels.items():
            check_known(f"names.{name}", key, factors, "no such factor")
            check_known(f"names.{name}.{key}", level, factors[key], "no level of this factor")
        other = seen.setdefault(frozenset(levels.items()), name)
        if other != name:
            raise ValueRefused(
                key="names", value=name, why=f"it stands for the same levels as {other!r}"
            )


def whole(names: Names, factors: Factors, only: Only) -> Names:
    """Return the names with all levels that each stands for: those given, and with ``only`` those
    that follow.

    A level follows where every setting with the given levels has it, and its factor has others.
    """
    return {
        name: dict(levels) | dict(_following(levels, factors, only))
        for name, levels in names.items()
    }


def _following(
    levels: Mapping[str, Any], factors: Factors, only: Only
) -> Iterator[tuple[str, Any]]:
    mine = [
        one for one in only if all(one.get(key, level) == level for key, level in levels.items())
    ]
    for key in factors if mine else ():
        found = [one.get(key) for one in mine]
        if (
            key not in levels
            and len(factors[key]) > 1
            and all(key in one and one[key] == found[0] for one in mine)
        ):
            yield key, found[0]


def names_in(names: Names, levels: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names among ``levels``, each with the keys that it stands for: those of more
    levels go first.

    Every level has one name at most. ``names`` have all of their levels; both are as tables show
    them.
    """
    found = {}
    left = dict(levels)
    for name, own in sorted(names.items(), key=lambda one: -len(one[1])):
        if all(key in left and left[key] == level for key, level in own.items()):
            found[name] = list(own)
            left = {key: level for key, level in left.items() if key not in own}
    return found
