"""The container engines by name, and the place where runs execute: an engine that can be used, or the host, and why."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from study.artifacts.prepared import ImageRequest
from study.base import devices
from study.base.errors import StudyError
from study.config.sections import Device
from study.config.selection import Selection
from study.host.engine import container
from study.host.engine.apptainer import Apptainer
from study.host.engine.base import Engine, Trouble
from study.host.engine.docker import Docker, Podman
from study.host.engine.request import identified, request

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Docker(), Podman(), Apptainer())}


def engine(name: str) -> Engine:
    """Return the engine called ``name``. Raise :class:`StudyError` if it is none, such as ``none``, the host."""
    if name not in ENGINES:
        raise StudyError(key="container", value=name, allowed=ENGINES)
    return ENGINES[name]


@dataclass(frozen=True)
class EngineChoice:
    """The place where runs execute: the engine (``none``: the host), the reason, and the image of each device."""

    engine: str
    reason: str
    images: Mapping[Device, ImageRequest] = dataclasses.field(default_factory=dict)
    inside: str | None = None  # the engine of the container around the whole pipeline, if there is one


DEVICES: tuple[Device, ...] = ("cpu", "cuda")


def choose_engine(selection: Selection, fetch: bool, on_other_machines: bool = False) -> EngineChoice:
    """Return the place for the key ``container``: ``auto`` falls back to the host; a named engine must be usable.

    With ``fetch`` a missing image is pulled from its registry. Where an executor makes the runs ``on_other_machines``,
    this one tells nothing of their engines and GPUs: ``auto`` is the host, and the plans tell which images are needed.
    Raise :class:`StudyError` if a named engine cannot be used.
    """
    requested, inside = selection.container, container.inside()
    if requested == "none":
        return EngineChoice(
            "none", f"asked for, inside a container ({inside})" if inside else "asked for", inside=inside
        )
    if requested == "auto" and on_other_machines:
        return EngineChoice("none", "the engines of an executor's machines are not known", inside=inside)
    trouble = Trouble(f"the pipeline itself runs inside a container ({inside})") if inside else None
    asked = engine("docker" if requested == "auto" else requested)
    wanted: dict[Device, ImageRequest] = {device: request(selection, device) for device in DEVICES}
    trouble = trouble or asked.why_not()
    needed = [] if on_other_machines else _needed(selection)
    for device in needed:
        trouble = trouble or (asked.gpu_trouble() if device == "cuda" else None)
        trouble = trouble or asked.image_trouble(wanted[device], fetch)
    if trouble is None:
        named = {device: identified(wanted[device], asked) for device in needed}
        return EngineChoice(asked.name, "its engine answers" if requested == "auto" else "asked for", wanted | named)
    if requested == "auto":
        return EngineChoice("none", trouble.reason, inside=inside)
    raise StudyError(
        f"container: {requested!r} cannot be used: {trouble}; fix that, or run on the host: --config container=none"
    )


def _needed(selection: Selection) -> list[Device]:
    """Return the selected devices that this machine has."""
    asked = DEVICES if selection.devices == "auto" else tuple(selection.devices)
    return [device for device in asked if devices.absent(device) is None]
