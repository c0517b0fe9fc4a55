"""The image step: let the engine bring an image, test it once, and describe it."""

from pathlib import Path
from typing import TextIO

from study.artifacts.prepared import Image, ImageRequest
from study.base.errors import StudyError
from study.base.strict import Strict
from study.config.sections import Device
from study.host.engine import base, lifetime
from study.host.engine.container import code_mount
from study.host.engine.docker import Docker

LOCK_LABEL = "study.lock-sha256"
WITHOUT_GPU = (
    "look at the NVIDIA Container Toolkit, leave the GPU out (--config 'devices=[cpu]') or run on "
    "the host (--config container=none)"
)


def make(
    engine: Docker,
    wanted: ImageRequest,
    results: Path,
    log: TextIO,
    gpu: bool,
    for_commands: bool = False,
) -> Image:
    """Build, load or pull the image, test it once, and return its description.

    The test imports the training stack, and with ``gpu`` lets torch look for a GPU. A user's image
    ``for_commands`` needs nothing of ours, and is asked for ``sh`` alone. Raise
    :class:`StudyError` if a step fails.
    """
    seconds = engine.build(wanted, log) if wanted.kind == "built" else None
    beneath = engine.image(wanted.base_image) if wanted.base_image else None
    stored = engine.image(engine.bring(wanted, log))
    if stored is None:
        raise StudyError(f"images.{wanted.device}: {engine.name} has no image {wanted.reference!r}")
    lock = stored.labels.get(LOCK_LABEL)
    of_a_user = for_commands and wanted.kind != "built"
    seen = _try(engine, stored.id, results, log, wanted.device, gpu, of_a_user)
    return Image(
        request=wanted,
        engine=engine.name,
        engine_version=engine.version(),
        id=stored.id,
        digest=stored.digest,
        lock_sha256=None if lock == "unknown" else lock,  # which a build by hand leaves in place
        base_digest=beneath.digest if beneath else None,
        build_seconds=seconds,
        python=seen.python,
        libraries=seen.libraries,
        gpu_seen=seen.gpu_trouble is None,
    )


def bring_here(engine: Docker, image: Image, log: TextIO) -> None:
    """Bring an image that another machine has described, if this one lacks it.

    Raise :class:`StudyError` if it cannot be had, or if it is another one by now.
    """
    if engine.image(image.id):
        return
    lacking = f"images.{image.request.device}: {engine.name} lacks the image of the start"
    try:
        stored = engine.image(engine.bring(image.request, log))
    except StudyError as error:
        raise StudyError(f"{lacking}, and cannot bring it: {error}") from None
    if stored is None or stored.id != image.id:
        raise StudyError(f"{lacking}, and has another one in its place")


class Seen(Strict):
    """The output of ``python -m study.training.instruments.machine`` in the image."""

    python: str
    libraries: dict[str, str]
    gpu_trouble: str | None


NOT_ASKED = Seen(python="not asked for", libraries={}, gpu_trouble=None)
"""What is known of an image that is a user's, and may hold no Python."""


def _try(
    engine: Docker,
    image: str,
    results: Path,
    log: TextIO,
    device: Device,
    gpu: bool,
    of_a_user: bool,
) -> Seen:
    with lifetime.scratch_folder(results) as scratch:
        command = ["python", "-m", "study.training.instruments.machine"]
        if of_a_user:
            command = ["sh", "-c", f"echo '{NOT_ASKED.model_dump_json()}'"]
        title = f"image {device}"
        try:
            ended = lifetime.enter(
                engine, image, command, scratch, [code_mount()], log, title, gpus=gpu
            )
        except StudyError as error:
            hint = f"; {WITHOUT_GPU}" if gpu else ""
            raise StudyError(f"images.{device}: {error}{hint}") from None
    try:
        described = next(line for line in reversed(ended.tail) if line.startswith("{"))
        seen = Seen.model_validate_json(described)
    except (StopIteration, ValueError):
        said_last = ended.trouble or base.last_words(ended.tail)
        raise StudyError(
            f"images.{device}: the image cannot run {'sh' if of_a_user else 'the training code'}: "
            f"{said_last}"
        ) from None
    if gpu and seen.gpu_trouble:
        raise StudyError(
            f"images.{device}: in the image torch finds no GPU: {seen.gpu_trouble}; {WITHOUT_GPU}"
        )
    return seen


def is_current(path: Path, engine: Docker, wanted: ImageRequest, gpu: bool) -> bool:
    """Return whether the image described in ``path`` is the wanted one, and still exists."""
    try:
        there = Image.read(path)
    except StudyError:
        return False
    asked_for = (
        there.engine == engine.name and there.request == wanted and (there.gpu_seen or not gpu)
    )
    return asked_for and engine.image(there.id) is not None
