"""Findings of one kind among all."""

from collections.abc import Iterable
from typing import TypeVar

Kind = TypeVar("Kind")


def only(kind: type[Kind], found: Iterable[object]) -> list[Kind]:
    """Return the findings of one kind."""
    return [one for one in found if isinstance(one, kind)]
