"""What a scheduler gives a run, as an extra with a module ``allocation`` tells it; without one, this machine alone."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol, cast

from study.artifacts.record import Allocation
from study.artifacts.run import Node
from study.base.extras import extras_with, load_extra
from study.config.selection import MachineClass
from study.config.settings import Settings

MARGIN_SECONDS = 60.0
"""Seconds before the end of an allocation in which no run is begun: the last record is to be written, and a report."""


class Scheduler(Protocol):
    """What an extra's module ``allocation`` offers."""

    def allocation(self, machine: str | None) -> Allocation | None:
        """Return the allocation of this process, whose run asked for the class ``machine``; None outside of one."""

    def nodes_of(self, count: int) -> list[Node]:
        """Return the first ``count`` machines of this process's allocation, or none if it has fewer."""

    def end_of_allocation(self) -> float | None:
        """Return when this process's allocation ends, in epoch seconds; None without one, or if it has no end."""

    def requested_resources(
        self, runs: Sequence[Settings], machines: Mapping[str, MachineClass]
    ) -> Mapping[str, str | int | None]:
        """Return the resources that a block of runs asks an executor for, by Snakemake's names."""


class Alone:
    """No scheduler: this machine alone."""

    def allocation(self, machine: str | None) -> None:
        """Return nothing."""

    def nodes_of(self, count: int) -> list[Node]:
        """Return no machine."""
        return []

    def end_of_allocation(self) -> None:
        """Return nothing: the machine stays."""

    def requested_resources(
        self, runs: Sequence[Settings], machines: Mapping[str, MachineClass]
    ) -> Mapping[str, str | int | None]:
        """Return nothing to ask for."""
        return {}


@cache
def scheduler() -> Scheduler:
    """Return the scheduler of the first extra that knows one."""
    names = extras_with("allocation")
    return cast(Scheduler, load_extra(names[0], "allocation")) if names else Alone()
