"""What is known of a key beside its type, its bounds and its description: each field of a run's
models is marked with a :class:`Key`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel


class Values(NamedTuple):
    """Some values of a key: their names, and the test that tells them from all other values."""

    names: str
    hold: Callable[[Any], bool]


When = Mapping[str, Values]
"""Keys with the values with which a row counts."""


def one_of(*values: Any) -> Values:
    """Return these values."""
    return Values(", ".join(map(as_yaml, values)), lambda value: value in values)


def as_yaml(value: Any) -> str:
    """Return ``value`` as a study's file has it; ``none`` if there is no value."""
    return (
        "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def all_hold(when: When, settings: BaseModel) -> bool:
    """Return whether every key of ``when`` has one of its values."""
    return all(values.hold(attrgetter(key)(settings)) for key, values in when.items())


def values_of(when: When, settings: BaseModel) -> str:
    """Return the values that the keys of ``when`` have, as the context of an error."""
    return f"with {' and '.join(f'{key} {as_yaml(attrgetter(key)(settings))}' for key in when)}"


class Idle(NamedTuple):
    """Where a key changes nothing: every key of ``when`` has one of its values."""

    when: When
    cure: str
    """What makes the key effective."""


@dataclass(frozen=True)
class Key:
    """What is known of one key. What is not given is usual."""

    called: str = ""
    """The key in words, where the last part of its name does not say it."""
    short: str = ""
    """What stands before its levels in the short name of a run."""
    words: Mapping[Any, str] = field(default_factory=dict)
    """Words for levels that tables show otherwise; all words of a key differ."""
    idle: Sequence[Idle] = ()
    """Where it has no effect. On a section it holds for each of its keys."""
    small: Any = ...
    """Its value in a run in small; a number is at most this."""
    tried: bool | None = None
    """False if the trial of a user's model leaves it at its default: it decides how fast a run is,
    and where."""
    same_way: bool = False
    """True if runs that differ in it alone compute in one way: one warm-up run serves them."""
    in_force: Sequence[str] = ()
    """What is in force in a process (fields of ``InForce``) that the key asks for."""
    same_work: bool = False
    """True if it changes how the work is done, or repeats it, and not the work itself. Levels of
    such a key share their seeds."""
    identifies: Literal["always", "where it is set", "never"] | None = None
    """Whether the key of a run (its digest) holds the value; None: always. ``never``: it changes
    no run, or the digest holds what it leads to. ``where it is set``: older records have none."""

    def within(self, section: "Key") -> "Key":
        """Return what is known of the key in a section, whose own mark holds where the key has
        none."""
        return replace(
            self,
            idle=(*self.idle, *section.idle),
            tried=section.tried if self.tried is None else self.tried,
            identifies=self.identifies or section.identifies,
        )
