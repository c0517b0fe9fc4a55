"""The image step: check that an image is available, build, load or pull it, test it once, save it as an archive."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

from study import __version__
from study.artifacts.image import Image, ImageRequest, read
from study.artifacts.layout import Results
from study.base.errors import StudyError
from study.base.files import ROOT, file_sha256
from study.base.strict import Strict
from study.config.sections import Device
from study.host.engine import client, lifetime
from study.host.engine.client import Trouble
from study.host.engine.container import PROXIES
from study.host.engine.mounts import code_mount
from study.host.engine.request import DOCKERFILE, LOCK, TARGETS, base_of
from study.host.supervise import execute

LOCK_LABEL = "study.lock-sha256"
BUILD_SECONDS = 7200
WITHOUT_GPU = (
    "look at the NVIDIA Container Toolkit, leave the GPU out (--config devices=[cpu]) or run on the host "
    "(--config container=none)"
)


def why_not(engine: str, wanted: ImageRequest, fetch: bool) -> Trouble | None:
    """Return the reason why the engine cannot get the image. None if it is there or can be built.

    With ``fetch`` a missing image is pulled, because only a pull shows whether it can be pulled.
    """
    if wanted.kind == "archive":
        return None
    if engine == "apptainer":
        if wanted.kind == "built":
            name = f"images.{wanted.device}"
            return Trouble(f"apptainer builds no Dockerfile: name a .sif, an archive or a reference as {name}")
        return None
    if client.image(engine, wanted.reference) is not None:
        return None
    missing = wanted.base_image or wanted.reference
    if client.image(engine, missing) is not None or not fetch:
        return None
    print(f"{engine}: looking for {missing} in its registry", file=sys.stderr, flush=True)
    try:
        client.pull(engine, missing)
    except StudyError as error:
        if wanted.kind == "reference":
            return Trouble(
                f"the image of images.{wanted.device} is not here and cannot be pulled", f"{missing}: {error}"
            )
        reason = (
            "the base image is not here and cannot be pulled; name one that is here as base_image, or a prebuilt "
            f"image as images.{wanted.device}"
        )
        return Trouble(reason, f"{missing}: {error}")
    return None


def make(engine: str, wanted: ImageRequest, results: Path, log: TextIO, gpu: bool) -> Image:
    """Build, load or pull the image, test it once, and return its description.

    The test imports the training stack, and with ``gpu`` lets torch look for a GPU. Raise :class:`StudyError` if a step
    fails.
    """
    seconds, base_digest = None, None
    if wanted.kind == "built":
        seconds = _build(engine, wanted, log)
        base = client.image(engine, wanted.base_image or "")
        base_digest = base.digest if base else None
    reference = _bring(engine, wanted, results, log)
    stored = client.image(engine, reference)
    if stored is None:
        raise StudyError(f"images.{wanted.device}: {engine} has no image {wanted.reference!r}")
    run_as = reference if engine == "apptainer" else stored.id
    seen = _try(engine, run_as, results, log, wanted.device, gpu)
    return Image(
        request=wanted,
        engine=engine,
        engine_version=client.version(engine),
        id=stored.id,
        digest=stored.digest,
        run_as=run_as,
        created=stored.created,
        lock_sha256=_known(stored.labels.get(LOCK_LABEL)),
        base_digest=base_digest,
        build_seconds=seconds,
        python=seen.python,
        libraries=seen.libraries,
        gpu_seen=seen.gpu_trouble is None,
    )


def _known(label: str | None) -> str | None:
    """Return the label, or None for the Dockerfile's default, which a build by hand leaves in place."""
    return None if label == "unknown" else label


def _build(engine: str, wanted: ImageRequest, log: TextIO) -> float | None:
    """Build the image if it is missing. Return the duration in seconds, or None if it was there."""
    if client.image(engine, wanted.reference) is not None:
        return None
    values = {"VERSION": __version__, "REVISION": _commit(), "LOCK_SHA256": file_sha256(LOCK)}
    if wanted.base_image != base_of(DOCKERFILE.read_text(encoding="utf-8")):
        values["BASE_IMAGE"] = str(wanted.base_image)
    line = [engine, "build", "--network", "host", "--target", TARGETS[wanted.device], "--tag", wanted.reference]
    line += ["--file", str(DOCKERFILE)]
    for key, value in values.items():
        line += ["--build-arg", f"{key}={value}"]
    line += [item for name in PROXIES if name in os.environ for item in ("--build-arg", name)]
    begin = time.perf_counter()
    title = f"image {wanted.device}"
    ended = execute([*line, str(ROOT)], os.environ, log, title, timeout_seconds=BUILD_SECONDS)
    if ended.code:
        raise StudyError(
            f"{title}: the build failed: {client.last_words(ended.tail)}; to run without containers: "
            "--config container=none"
        )
    return time.perf_counter() - begin


def _bring(engine: str, wanted: ImageRequest, results: Path, log: TextIO) -> str:
    """Load or pull the given image, and return the reference by which the engine knows it."""
    if engine == "apptainer":
        return _sif(wanted, results, log)
    if wanted.kind == "archive":
        return client.load(engine, Path(wanted.reference))
    if client.image(engine, wanted.reference) is None:
        client.pull(engine, wanted.reference)
    return wanted.reference


def _sif(wanted: ImageRequest, results: Path, log: TextIO) -> str:
    """Return the path of apptainer's image file: the given one, or one made from an archive or a reference."""
    if wanted.reference.endswith(".sif"):
        return wanted.reference
    target = Results(results).image_file(wanted.device, wanted.identity)
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        scheme = "docker-archive:" if wanted.kind == "archive" else "docker://"
        temporary = target.with_name(f".{target.name}")
        line = ["apptainer", "build", "--force", str(temporary), f"{scheme}{wanted.reference}"]
        ended = execute(line, os.environ, log, f"image {wanted.device}", timeout_seconds=BUILD_SECONDS)
        if ended.code:
            raise StudyError(f"images.{wanted.device}: apptainer made no image: {client.last_words(ended.tail)}")
        temporary.replace(target)
    return str(target.resolve())


class Seen(Strict):
    """The output of ``python -m study.training.probe`` in the image."""

    python: str
    libraries: dict[str, str]
    gpu_trouble: str | None


def _try(engine: str, run_as: str, results: Path, log: TextIO, device: Device, gpu: bool) -> Seen:
    with lifetime.scratch_folder(results) as scratch:
        command = ["python", "-m", "study.training.probe"]
        title = f"image {device}"
        try:
            end, said = lifetime.enter(engine, run_as, command, scratch, [code_mount()], log, title, gpus=gpu)
        except StudyError as error:
            raise StudyError(
                f"images.{device}: {error}; {WITHOUT_GPU}" if gpu else f"images.{device}: {error}"
            ) from None
    try:
        seen = Seen.model_validate(json.loads(next(line for line in reversed(said) if line.startswith("{"))))
    except (StopIteration, ValueError):
        said_last = end.trouble or client.last_words(said)
        raise StudyError(f"images.{device}: the image cannot run the training code: {said_last}") from None
    if gpu and seen.gpu_trouble:
        raise StudyError(f"images.{device}: in the image torch finds no GPU: {seen.gpu_trouble}; {WITHOUT_GPU}")
    return seen


def _commit() -> str:
    try:
        done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip() or "unknown"


def is_current(path: Path, engine: str, wanted: ImageRequest, gpu: bool) -> bool:
    """Return whether the image described in ``path`` is the wanted one, and still exists."""
    try:
        there = read(path)
    except StudyError:
        return False
    asked_for = there.engine == engine and there.request == wanted and (there.gpu_seen or not gpu)
    return asked_for and client.has_image(engine, there.id, there.run_as)


def save(engine: str, image: Image, target: Path) -> None:
    """Write the image to ``target`` as an archive, which the key ``images`` takes on another machine."""
    if engine == "apptainer":
        raise StudyError(f"apptainer's image is already a file: {Path(image.run_as).name} in results/images")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    reference = image.request.reference if image.request.kind != "archive" else image.id
    client.ask(engine, "save", "--output", str(temporary), reference, seconds=client.LOAD_SECONDS)
    temporary.replace(target)
