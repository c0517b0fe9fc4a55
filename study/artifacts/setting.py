"""A setting: levels of a study's factors, by their keys, in words, and as a short name.

Every run has one. A part of the factors makes a setting, too: that of a group, or of a level in it.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any, get_args

from study.base.errors import StudyError
from study.base.files import digest
from study.base.strict import Strict
from study.config import names
from study.config.names import APART, level_words
from study.config.sections import Device, short_name
from study.config.settings import known, leaf_words
from study.config.study import Study, display_level

Level = str | bool | int | float | None
Levels = Mapping[str, Level]
"""Levels by the dotted keys of their factors."""
FIRST_LEVELS = "first levels"
"""The setting with the first level of every switch."""


class Setting(Strict):
    """Levels of some or all factors of a study."""

    levels: dict[str, Level]
    """Levels by the dotted keys of their factors, in the study's order."""
    label: str
    """The levels in words. Where the effects of switches are compared, it has those that are not at
    their first level."""
    short: str
    """Short name, safe as a file name. A run's is unique in its study."""
    named: dict[str, list[str]] = {}
    """The study's `names` in the label, each with the keys of the levels that it stands for."""

    def __hash__(self) -> int:
        return hash((self.label, self.short))

    def part(self, keys: Collection[str]) -> "Setting":
        """Return the setting with the levels of some of its factors."""
        levels = {key: level for key, level in self.levels.items() if key in keys}
        named = {name: own for name, own in self.named.items() if levels.keys() >= set(own)}
        words = with_names({key: level_words(key, level) for key, level in levels.items()}, named)
        return Setting(
            levels=levels, label=joined([*words.values()]), short=_short(levels), named=named
        )

    def within(self, group: "Setting") -> "Setting":
        """Return the setting with the levels of a group, and its own."""
        return Setting(
            levels=group.levels | self.levels,
            label=f"{group.label}, {self.label}",
            short=f"{self.short}-{group.short}",
            named=group.named | self.named,
        )


EVERYWHERE = Setting(levels={}, label="the run", short="run")
"""The setting of no factor."""


def setting_of(study: Study, levels: Levels) -> Setting:
    """Return the setting with these levels by the keys of their factors."""
    if not levels:
        return EVERYWHERE
    named = _named(study, levels)
    return Setting(
        levels=dict(levels),
        label=_label(study, levels, named),
        short=name_of(study, levels),
        named=named,
    )


def part_of(study: Study, levels: Levels, keys: Sequence[str]) -> Setting:
    """Return the setting of the levels of some factors, as tables show these: a path stays as it is
    shown."""
    return setting_of(
        study,
        {
            key: display_level(study, key, levels[key])
            if isinstance(levels[key], str)
            else levels[key]
            for key in keys
        },
    )


def parts_of(study: Study, keys: Sequence[str]) -> dict[str, Setting]:
    """Return every setting of some factors by its label, in the study's order; the device may be
    none of the factors."""
    levels = [study.factors.get(key, get_args(Device)) for key in keys]
    every = (part_of(study, dict(zip(keys, one, strict=True)), keys) for one in product(*levels))
    return {setting.label: setting for setting in every}


def _named(study: Study, levels: Levels) -> dict[str, list[str]]:
    """Return the names that a study gives to levels, each with the keys that it stands for."""
    if not study.names:
        return {}
    whole = names.whole(study.names, study.factors, study.only)
    as_shown = {
        name: {key: display_level(study, key, level) for key, level in own.items()}
        for name, own in whole.items()
    }
    return names.names_in(
        as_shown, {key: display_level(study, key, level) for key, level in levels.items()}
    )


def with_names(words: Mapping[str, str], named: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the words of levels with each name in place of those it stands for, at the key of the
    first of them."""
    first = {next(key for key in words if key in own): name for name, own in named.items()}
    gone = set().union(*named.values()) - first.keys()
    return {key: first.get(key, word) for key, word in words.items() if key not in gone}


def settings_of(study: Study, every: Sequence[Levels]) -> list[Setting]:
    """Return the setting of each configuration of a study, each with a short name of its own.

    Raise :class:`StudyError` if two have the same levels.
    """
    seen = Counter(frozenset(levels.items()) for levels in every)
    for levels in every:
        if seen[frozenset(levels.items())] > 1:
            why = f"{levels} occur together more than once: `auto` is one of the other levels here"
            raise StudyError(key="factors", why=why)
    settings = [setting_of(study, levels) for levels in every]
    counts = Counter(setting.short for setting in settings)
    return [
        setting
        if counts[setting.short] == 1
        else setting.model_copy(update={"short": f"{setting.short}-{digest(setting.levels)[:4]}"})
        for setting in settings
    ]


def shareable(study: Study, setting: Setting) -> Setting:
    """Return the setting with every path cut to its base name, because people share records."""
    levels = cut_paths(setting.levels)
    if levels == setting.levels:
        return setting
    return setting.model_copy(
        update={"levels": levels, "label": _label(study, levels, setting.named)}
    )


def cut_paths(levels: Levels) -> dict[str, Level]:
    """Return levels with every path cut to its base name."""
    return {
        key: Path(level).name if isinstance(level, str) and os.sep in level else level
        for key, level in levels.items()
    }


def _label(study: Study, levels: Levels, named: Mapping[str, Sequence[str]]) -> str:
    """Return the levels in words, with the study's names in place of those that they stand for."""
    words = with_names({key: _word(study, key, level) for key, level in levels.items()}, named)
    if not study.effects:
        return joined([*words.values()])
    device = [words.pop("device")] if "device" in words else []
    return ", ".join([*device, *([_switched(study, words)] if words else [])])


def _word(study: Study, key: str, level: Level) -> str:
    return level_words(key, level if level is None else display_level(study, key, level))


def _switched(study: Study, words: Mapping[str, str]) -> str:
    """Return the levels that are not the first ones, each with its key if another key has such a
    level, too."""
    known = {
        key: [_word(study, key, level) for level in study.factors[key]] for key in study.factors
    }
    # The device is no switch: its word stands before theirs.
    counts = Counter(
        chain.from_iterable(known[key][1:] for key in study.compared if key != "device")
    )
    changed = [(key, word) for key, word in words.items() if word != known[key][0]]
    parts = [f"{leaf_words(key)} {word}" if counts[word] > 1 else word for key, word in changed]
    return " + ".join(map(_quoted, parts)) or FIRST_LEVELS


def joined(words: Sequence[str]) -> str:
    """Return levels as one label; what has a comma or a plus in itself stands in quotes between
    others."""
    return ", ".join(map(_quoted, words)) if len(words) > 1 else "".join(words)


def _quoted(word: str) -> str:
    return f'"{word}"' if any(mark in word for mark in APART) else word


def name_of(study: Study, levels: Levels) -> str:
    """Return the short name of levels, e.g. ``bs16-cpu``: the curve's factor is first, the device
    last."""
    return _short(levels, study.curve.x if study.curve else None)


def _short(levels: Levels, first: str | None = None) -> str:
    keys = sorted(levels, key=lambda key: (key != first, key == "device", list(levels).index(key)))
    return "-".join(_part(key, levels[key]) for key in keys) or "run"


def _part(key: str, level: Any) -> str:
    short = known(key).short
    if isinstance(level, str) and not short:
        return slug(short_name(level) if key == "model.name" else level)
    return (short or leaf_words(key).replace(" ", "")) + slug(level)


def slug(level: Any) -> str:
    """Return the level as letters, digits, dots and underscores; a digest keeps two apart that lose
    letters."""
    text = str(level).lower() if isinstance(level, bool) else str(level)
    if isinstance(level, str) and os.sep in level:  # a path's base name: names of runs are shared
        return f"{slug(Path(level).name)[:24]}_{digest(text)[:4]}"
    safe = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")
    # A name that lost characters, such as a folder's, could equal another: a digest keeps them
    # apart.
    return (
        safe if safe == text or re.fullmatch(r"[\d.]+", text) else f"{safe[:24]}_{digest(text)[:4]}"
    )
