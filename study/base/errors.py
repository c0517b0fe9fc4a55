"""What a user reads: the one error type, and how a value, a duration and a number of things are
said."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Self

INTERRUPTED = (
    "interrupted: each file that is there is whole, and the same command goes on from there"
)
LARGEST = 2**63 - 1
"""The largest whole number that a value may be."""
SHOWN = 100
"""Characters of a bad value that an error shows."""
MOST = 20
"""Errors that one line names."""
UNSET: Any = ...
"""The value of an error that is about no value."""


def printable(text: str) -> str:
    """Return ``text`` in one line: a line break, and what else cannot be printed, is escaped."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def is_too_large(value: Any) -> bool:
    """Return whether ``value`` is a whole number that no file of results could hold."""
    return isinstance(value, int) and abs(value) > LARGEST


def shown(value: Any) -> str:
    """Return ``value`` as an error shows it: whole if it is short."""
    text = "a whole number beyond 64 bits" if is_too_large(value) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


def first_line(error: object) -> str:
    """Return the first line of an error's message, or nothing if it has none."""
    return (str(error).strip().splitlines() or [""])[0]


def duration_words(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours, in two digits or so: ``40 s``, ``3 min``,
    ``2.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else "1 s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def quantity(count: int, thing: str) -> str:
    """Return a number of things, such as ``1 run`` or ``2 runs``."""
    return f"{count} {thing}{'s' * (count != 1)}"


def say(words: str) -> None:
    """Print a line at once, on stderr: it is no output of a verb."""
    print(words, file=sys.stderr, flush=True)


class StudyError(Exception):
    """Bad input, or a machine that cannot serve, as one line: the key, the value and the allowed
    values.

    The line is ``source: key: value is not allowed context: why; allowed: allowed``, of which any
    part may be missing. Without a value it says why alone. ``text`` is a line by itself, for what
    is about no key; given with fields, it stands in place of the line that they would make.
    """

    def __init__(
        self,
        text: str = "",
        *,
        source: str = "",
        key: str = "",
        value: Any = UNSET,
        context: str = "",
        why: str = "",
        allowed: str | Iterable[str] = (),
    ) -> None:
        """``source`` names the file or study, ``context`` what rules the value out, such as "with
        device cpu"."""
        self.source = source
        self.key = key
        self.value = value
        self.context = context
        self.why = why
        self.allowed = allowed if isinstance(allowed, str) else ", ".join(map(str, allowed))
        super().__init__(text or self._line())

    def __str__(self) -> str:
        """Return the message in one line."""
        return printable(super().__str__())

    @classmethod
    def of_several(cls, errors: Sequence["StudyError"], source: str) -> Self:
        """Return one error with the fields of the first, whose line names the first 20 of them."""
        lines = list(dict.fromkeys(map(str, errors)))
        more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
        one = cls(": ".join(filter(None, [source, "; ".join([*lines[:MOST], *more])])))
        vars(one).update(vars(errors[0]), source=source)
        return one

    def _line(self) -> str:
        refusal = ""
        if self.value is not UNSET:
            refusal = f"{shown(self.value)} is not allowed {self.context}".rstrip()
        line = ": ".join(filter(None, [self.source, self.key, refusal, self.why]))
        return f"{line}; allowed: {self.allowed}" if self.allowed else line


class ValueRefused(StudyError, ValueError):
    """A :class:`StudyError` that a validator raises: pydantic collects it beside its own errors."""


def check_known(key: str, value: Any, allowed: Iterable[Any], why: str, source: str = "") -> None:
    """Raise :class:`ValueRefused` unless ``value`` is one of the ``allowed`` ones; ``why`` says
    what it is not."""
    if value not in (known := list(allowed)):
        raise ValueRefused(source=source, key=key, value=value, why=why, allowed=known or "none")
