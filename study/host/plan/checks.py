"""What must hold on this machine before a run starts."""

import importlib.util
import os

from study.artifacts.plan import Plan
from study.base.cpus import usable_cpus
from study.base.errors import StudyError
from study.config.settings import Settings
from study.host.engine.place import Place


def check_training_stack(place: Place) -> None:
    """Raise :class:`StudyError` if runs are to execute on a host without torch."""
    if place.engine == "none" and importlib.util.find_spec("torch") is None:
        raise StudyError(
            f"the runs would execute on the host ({place.reason}), where torch is not installed; fix that, "
            "or install torch with: make env"
        )


def check_limits(plans: list[Plan]) -> None:
    """Raise :class:`StudyError` if a limit of any run cannot be enforced on this machine."""
    for plan in plans:
        for run in plan.runs:
            _check_limits(plan, run.settings)


def _check_limits(plan: Plan, settings: Settings) -> None:
    limits = settings.limits
    if limits.memory_gib is not None and plan.engine == "none":
        raise StudyError(
            f"study {plan.name}: limits.memory_gib: {limits.memory_gib:g} is not allowed on the host, which cannot "
            f"enforce it ({plan.engine_reason}); a container engine can"
        )
    if limits.cpus is not None and (limits.cpus > usable_cpus() or not hasattr(os, "sched_setaffinity")):
        raise StudyError(
            f"study {plan.name}: limits.cpus: {limits.cpus} is not allowed: this machine offers {usable_cpus()}"
        )
