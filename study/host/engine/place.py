"""Where runs execute: in a container engine that can serve, or on the host, and why."""

import dataclasses
from dataclasses import dataclass

from study.artifacts.image import ImageRequest
from study.base import devices
from study.base.errors import StudyError
from study.config.sections import Device
from study.config.selection import Selection
from study.host.engine import bring, client, container
from study.host.engine.client import Trouble
from study.host.engine.request import request


@dataclass(frozen=True)
class Place:
    """Where runs execute: the engine or ``none`` for the host, why, and the image of each device."""

    engine: str
    reason: str
    images: dict[Device, ImageRequest] = dataclasses.field(default_factory=dict)
    inside: str | None = None  # the container of the whole pipeline: no host like the others

    def image(self, device: Device) -> str | None:
        """What tells the image of a device from another; None on the host."""
        return self.images[device].identity if device in self.images else self.inside


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
    wanted = {device: request(selection, device) for device in DEVICES}
    trouble = trouble or client.why_not(engine)
    for device in _needed(selection):
        trouble = trouble or (client.gpu_trouble(engine) if device == "cuda" else None)
        trouble = trouble or bring.why_not(engine, wanted[device], fetch)
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
