"""Where runs execute: in a container engine that can serve, or on the host, and why."""

import importlib.util
import os

from study import container, devices, engines, image_step, images
from study.config import Device, Selection, Settings
from study.cpus import usable_cpus
from study.engines import Trouble
from study.errors import StudyError
from study.plan import Place, Plan

DEVICES: tuple[Device, ...] = ("cpu", "cuda")


def choose(selection: Selection, fetch: bool) -> Place:
    """The place for ``container: ...``: ``auto`` falls back to the host, an engine named outright must serve.

    With ``fetch`` an image that is missing is looked for in its registry.
    """
    requested, inside = selection.container, container.inside()
    if requested == "none":
        return Place("none", f"asked for, inside a container ({inside})" if inside else "asked for", inside=inside)
    trouble = Trouble(f"the pipeline itself runs inside a container ({inside})") if inside else None
    engine = "docker" if requested == "auto" else requested
    wanted = {device: images.request(selection, device) for device in DEVICES}
    trouble = trouble or engines.why_not(engine)
    for device in _needed(selection):
        trouble = trouble or (engines.gpu_trouble(engine) if device == "cuda" else None)
        trouble = trouble or image_step.why_not(engine, wanted[device], fetch)
    if trouble is None:
        return Place(engine, "its engine answers" if requested == "auto" else "asked for", wanted)
    if requested == "auto":
        return Place("none", trouble.reason, inside=inside)
    raise StudyError(
        f"container: {requested!r} cannot serve: {trouble}; mend that, or run on the host: --config container=none"
    )


def _needed(selection: Selection) -> list[Device]:
    """The devices that this machine has, of those that are selected."""
    asked = DEVICES if selection.devices == "auto" else tuple(selection.devices)
    return [device for device in asked if devices.absent(device) is None]


def check_training_stack(place: Place) -> None:
    """Raise :class:`StudyError` where runs are to execute on a host that holds no torch."""
    if place.engine == "none" and importlib.util.find_spec("torch") is None:
        raise StudyError(
            f"the runs would execute on the host ({place.reason}), where torch is not installed; mend that, "
            "or install torch with: make env"
        )


def check_limits(plans: list[Plan]) -> None:
    """Raise :class:`StudyError` for a limit that cannot be kept here."""
    for plan in plans:
        for run in plan.runs:
            _check_limits(plan, run.settings)


def _check_limits(plan: Plan, settings: Settings) -> None:
    limits = settings.limits
    if limits.memory_gib is not None and plan.engine == "none":
        raise StudyError(
            f"study {plan.name}: limits.memory_gib: {limits.memory_gib:g} is not allowed on the host, which cannot "
            f"keep it ({plan.engine_reason}); a container engine can"
        )
    if limits.cpus is not None and (limits.cpus > usable_cpus() or not hasattr(os, "sched_setaffinity")):
        raise StudyError(
            f"study {plan.name}: limits.cpus: {limits.cpus} is not allowed: this machine offers {usable_cpus()}"
        )
