"""Numbers and keys as people read them, and the direction in which a user's words run."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isclose, prod
from typing import Any

from study.analysis.stats.estimate import WIDEST
from study.artifacts.setting import Setting, joined, with_names
from study.config.names import level_words
from study.config.settings import ARGUMENTS, KEYS, in_words, known

EVIDENCE = {
    "others_cpu_percent": "CPU time of others",
    "steal_percent": "CPU time taken by the virtual machine's host",
    "memory_pressure_percent": "waits for memory",
    "throttled_percent": "a GPU slowed down by heat or hardware",
    "device_processes": "processes of others on the GPU",
    "device_percent": "a GPU that was busy before",
}


DEVICES = KEYS["device"].words


def device_words(device: str, article: bool = False) -> str:
    """Return a device in words: ``GPU``, or ``the GPU``; any other name as it is."""
    words = DEVICES.get(device, device)
    return f"the {words}" if article and device in DEVICES else words


def device_of(group: Setting) -> str | None:
    """Return the device of a group; None where it has none that we know, or one that the study
    gives a name."""
    device = str(group.levels.get("device"))
    named = any("device" in own for own in group.named.values())
    return device if device in DEVICES and not named else None


def place_words(group: Setting, article: bool = False) -> str:
    """Return a group's levels with its device in words: ``GPU, fp32``, or ``the GPU with fp32``."""
    device = device_of(group)
    if device is None:
        return setting_words(group, article)
    rest = group.part([key for key in group.levels if key != "device"])
    words = device_words(device, article)
    if not rest.levels:
        return words
    return f"{words}{' with' if article else ','} {setting_words(rest, article)}"


def group_names(groups: Sequence[Setting]) -> dict[Setting, Setting]:
    """Return a short setting for each group of a study, to tell it from the others; nothing for a
    group alone.

    Levels that all groups share are left out. Where levels change together, so that not every
    combination is a group, a group is named by what it does otherwise than the first, and the first
    by what no other shares with it.
    """
    every = list(dict.fromkeys(groups))
    if len(every) < 2:
        return {}
    whole = {group: group for group in every}
    if len({frozenset(group.levels) for group in every}) > 1:
        return whole
    base, *others = every
    told = [{key for key in base.levels if len({group.levels[key] for group in every}) > 1}] * len(
        every
    )
    if prod(len({group.levels[key] for group in every}) for key in told[0]) > len(every):
        first = {
            key for key in told[0] if all(group.levels[key] != base.levels[key] for group in others)
        }
        told = [
            first,
            *(
                {key for key in told[0] if group.levels[key] != base.levels[key]}
                for group in others
            ),
        ]
    names = [  # a key of a name comes with all others that the name stands for
        group.part(keys.union(*(own for own in group.named.values() if keys & set(own))))
        for group, keys in zip(every, told, strict=True)
    ]
    if all(told) and len(set(names)) == len(every):
        return dict(zip(every, names, strict=True))
    return whole


WITH = {
    "data loader": "a data loader",
    "decoded beforehand": "images decoded beforehand",
    "fastai": "fastai",
    "PyTorch loop": "the PyTorch loop",
}
"""Words of levels that follow ``with`` and not ``at``, as they do it."""


def setting_words(at: Setting, article: bool = False) -> str:
    """Return a setting in words, numbers with the key's name: ``batch size 64, bf16``; or as it
    follows ``with``."""
    words = {key: level_words(key, level) for key, level in at.levels.items()}
    for key, level in at.levels.items():
        if isinstance(level, (int, float)) and not isinstance(level, bool):
            words[key] = f"{in_words(key)} {words[key]}"
    told = {key: WITH.get(word, word) for key, word in words.items()} if article else words
    return joined([*with_names(told, at.named).values()])


def with_key(key: str, word: str) -> str:
    """Return the words of a level, with the key's name where they say too little: ``batch size
    64``, ``bf16``."""
    name = in_words(key)
    says_enough = known(key).words or key.startswith(ARGUMENTS) or name in word
    is_number = word.strip("*").replace(".", "", 1).replace("e-", "", 1).isdigit()  # or a bold one
    return word if says_enough and not is_number else f"{name} {word}"


def at_setting(at: Setting) -> str:
    """Return a setting, to follow a number: ``with a data loader``, ``at batch size 64``; nothing
    where it is empty."""
    covered = set().union(*at.named.values())
    own = {key: level for key, level in at.levels.items() if key not in covered}
    device = str(own.pop("device", ""))
    follow = {
        key: WITH[words] for key, level in own.items() if (words := level_words(key, level)) in WITH
    }
    told = [*at.named, *follow.values()]
    rest = at.part(own.keys() - follow.keys())
    parts = [f"on {device_words(device, article=True)}"] if device else []
    parts += [f"with {listed(told)}"] if told else []
    parts += [f"at {setting_words(rest)}"] if rest.levels else []
    return " ".join(parts)


def listed(items: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def agreeing(count: int, one: str, many: str) -> str:
    """Return the verb that agrees with a number of things."""
    return one if count == 1 else many


def number(value: float) -> str:
    """Return three significant digits, without an exponent between 1e-7 (a tenth of a microsecond)
    and a million."""
    if not 1e-7 <= abs(value) < 1e6:
        return f"{value:.3g}"
    if abs(value) < 1e-4:
        return f"{Decimal(f'{value:.3g}'):f}"
    rounded = abs(float(f"{value:.3g}"))  # 0.9999 is 1.00, and 9.999 is 10.0
    if rounded < 1:
        return f"{value:.3g}"
    whole = len(str(int(rounded)))
    return f"{value:.{max(0, 3 - whole)}f}"


NEAR_ONE = 0.15
"""Ratios this near to 1 need a digit more."""


def short(value: float, like: float | None = None) -> str:
    """Return two digits, as a sentence has them: ``2.4``, ``26``, ``0.73``; a ratio near 1 has
    three, as ``1.05``.

    ``like`` is the value that this one is a bound of: it has as many decimals.
    """
    near = value if like is None else like
    if abs(near - 1) <= NEAR_ONE:
        return f"{value:.2f}"
    rounded = float(f"{value:.2g}")
    if rounded == 0 or 10 <= rounded < 1e6:
        return f"{rounded:.0f}"
    return f"{value:.1f}" if 1 <= rounded < 10 else f"{value:.2g}"


MOST_DECIMALS = 9


def clear_of(value: float, others: Sequence[float], told: str) -> str:
    """Return ``told``, a number's words, with so many digits more that they stand on its side of
    the ``others``."""
    first = len(told.partition(".")[2])
    apart = [one for one in others if not isclose(value, one, abs_tol=10.0**-MOST_DECIMALS)]
    longer = (
        f"{value:{'+' * told.startswith('+')}.{decimals}f}"
        for decimals in range(first, MOST_DECIMALS)
    )
    return next(
        (
            words
            for words in (told, *longer)
            if all((float(words) - one) * (value - one) > 0 for one in apart)
        ),
        told,
    )


def three_digits(value: float) -> str:
    """Return ``number`` with its last zeros, for numbers that stand below each other: ``0.600``
    below ``0.581``."""
    return f"{value:#.3g}" if 1e-4 <= abs(value) < 0.9995 else number(value)


def bytes_words(value: float) -> str:
    """Return bytes in MiB or GiB."""
    return f"{value / 2**30:.2f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"


FORMULAS = {
    "constant": "T0",
    "step": "T0 + A/b",
    "root": "T0 + A/sqrt(b)",
    "power": "Tmin + c/b^alpha",
    "rise": "T0 + A/b + g b",
}


def law_formula(name: str) -> str:
    """Return the formula of a law."""
    return FORMULAS[name]


def interval(low: float | None, high: float | None) -> str | None:
    """Return ``4.9 to 5.3``; None where it says nothing: an end is missing, or they differ by a
    factor of ten."""
    if low is None or high is None or high > WIDEST * low:
        return None
    return f"{number(low)} to {number(high)}"


def coefficients(values: Mapping[str, float], intervals: Mapping[str, Any]) -> str:
    """Return coefficients with their intervals: ``T0 = 5.1 (4.9 to 5.3), A not determined``."""
    parts = []
    for name, value in values.items():
        bounds = intervals.get(name)
        if bounds is None:
            parts.append(f"{name} = {number(value)} (no interval)")
        else:
            told = interval(bounds.low, bounds.high)
            parts.append(f"{name} = {number(value)} ({told})" if told else f"{name} not determined")
    return ", ".join(parts)


CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""What turns the direction of all that follows it, and shows nothing itself."""
LETTER = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
RIGHT_TO_LEFT = re.compile(f"{LETTER}(?:[^A-Za-z]*{LETTER})?")
"""Letters that run from right to left, with what stands between them."""
ISOLATE, END = "\u2068", "\u2069"


def isolate_bidi(text: str) -> str:
    """Return a text whose letters from right to left move no others, and whose controls of
    direction are shown.

    Without it, a number that follows such letters is drawn before them.
    """
    if text.isascii():
        return text
    shown = CONTROLS.sub(lambda control: f"[U+{ord(control.group()):04X}]", text)
    return RIGHT_TO_LEFT.sub(lambda words: f"{ISOLATE}{words.group()}{END}", shown)
