"""What a scheduler gives a run: an extra with a module ``allocation`` knows it. Without one, this
machine is alone."""

from functools import cache
from types import ModuleType

from study.base.extras import extras_with, load_extra

MARGIN_SECONDS = 60.0
"""Seconds before the end of an allocation in which no run is begun: the last record is to be
written, and a report."""


@cache
def scheduler() -> ModuleType | None:
    """Return the module of the first extra that knows a scheduler; None without one.

    It has ``allocation``, ``nodes_of``, ``end_of_allocation`` and ``requested_resources``, as
    ``study_slurm`` has.
    """
    names = extras_with("allocation")
    return load_extra(names[0], "allocation") if names else None
