"""Questions to a container engine: whether it answers, its images, the state of a container, leftover containers.

The first argument of every function is the engine: ``docker``, ``podman`` or ``apptainer``.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from study.base.errors import StudyError
from study.base.files import file_sha256

ANSWER_SECONDS = 30
PULL_SECONDS = 600
LOAD_SECONDS = 3600


@dataclass(frozen=True)
class StoredImage:
    """An image that the engine has. ``digest`` is its checksum in a registry."""

    id: str
    digest: str | None
    created: str | None
    labels: Mapping[str, str]


@dataclass(frozen=True)
class State:
    """The state of a container, as its engine describes it."""

    running: bool
    started: bool
    exit_code: int
    oom_killed: bool


@dataclass(frozen=True)
class Trouble:
    """The reason why something cannot be used.

    ``detail`` is the engine's own message. It may name hosts, so records must not hold it.
    """

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


def why_not(engine: str) -> Trouble | None:
    """Return the reason why the engine cannot be used. None if it answers."""
    if shutil.which(engine) is None:
        return Trouble(f"{engine} is not installed")
    try:
        version(engine)
    except StudyError as error:
        return Trouble(f"{engine} does not answer", str(error))
    return None


def version(engine: str) -> str:
    """Return the version of the engine itself, not of its client."""
    arguments = {
        "docker": ["version", "--format", "{{.Server.Version}}"],
        "podman": ["info", "--format", "{{.Version.Version}}"],
        "apptainer": ["--version"],
    }[engine]
    return ask(engine, *arguments).strip().removeprefix("apptainer version ")


def ask(engine: str, *arguments: str, seconds: float = ANSWER_SECONDS) -> str:
    """Return the engine's standard output. Raise :class:`StudyError` if it fails or gives no answer in ``seconds``."""
    try:
        done = subprocess.run(
            [engine, *arguments], capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise StudyError(f"{engine} is not installed") from None
    except OSError as error:
        raise StudyError(f"{engine} cannot be started ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise StudyError(f"`{engine} {arguments[0]}`: no answer within {seconds:.0f} s") from None
    if done.returncode:
        raise StudyError(f"`{engine} {arguments[0]}`: {last_words(done.stderr or done.stdout)}")
    return done.stdout


def last_words(text: str | Sequence[str]) -> str:
    """Return the line of a program's output that names its error: the last with such a word, else the last line."""
    lines = [line.strip() for line in (text.splitlines() if isinstance(text, str) else text) if line.strip()]
    telling = [line for line in lines if re.search(r"error|cannot|denied|no such|not found", line, re.IGNORECASE)]
    return ([*lines, *telling] or ["no message"])[-1]


def inspect(engine: str, kind: str, name: str) -> dict[str, Any]:
    """Return the engine's description of an image or a container. Both engines give a list of one description."""
    values: list[dict[str, Any]] = json.loads(ask(engine, kind, "inspect", name))
    return values[0]


def image(engine: str, reference: str) -> StoredImage | None:
    """Return the engine's image with a reference or an id; for apptainer the file at that path. None if absent."""
    if engine == "apptainer":
        path = Path(reference)
        return StoredImage(f"sha256:{file_sha256(path)}", None, None, {}) if path.is_file() else None
    try:
        values = inspect(engine, "image", reference)
    except StudyError:
        return None
    digests = [str(digest).rsplit("@", 1)[-1] for digest in values.get("RepoDigests") or []]
    return StoredImage(
        id="sha256:" + str(values["Id"]).removeprefix("sha256:"),
        digest=digests[0] if digests else None,
        created=values.get("Created"),
        labels=(values.get("Config") or {}).get("Labels") or {},
    )


def has_image(engine: str, identifier: str, path: str) -> bool:
    """Return whether an image that was found earlier still exists, without reading it."""
    return Path(path).is_file() if engine == "apptainer" else image(engine, identifier) is not None


@cache
def is_rootless(engine: str) -> bool:
    """Return whether docker runs rootless: the caller is then root inside, and other users inside are unknown here."""
    return engine == "docker" and "rootless" in ask(engine, "info", "--format", "{{json .SecurityOptions}}")


def gpu_trouble(engine: str) -> Trouble | None:
    """Return the reason why the engine cannot give a GPU to a container, as far as known before one starts, or None."""
    if engine == "docker":
        tools = ("nvidia-container-runtime-hook", "nvidia-container-cli", "nvidia-ctk", "nvidia-container-toolkit")
        if any(map(shutil.which, tools)) or "nvidia" in ask(engine, "info", "--format", "{{json .Runtimes}}"):
            return None
        return Trouble("docker cannot give a container the GPU: the NVIDIA Container Toolkit is not installed")
    described = [path for folder in ("/etc/cdi", "/var/run/cdi") for path in Path(folder).glob("*nvidia*")]
    if engine == "podman" and not described:
        return Trouble("podman cannot give a container the GPU: there is no CDI description (nvidia-ctk cdi generate)")
    return None


def pull(engine: str, reference: str) -> None:
    """Pull an image from its registry."""
    ask(engine, "pull", "--quiet", reference, seconds=PULL_SECONDS)


def load(engine: str, archive: Path) -> str:
    """Load an archive that ``save`` made, and return the reference of its only image."""
    said = ask(engine, "load", "--input", str(archive), seconds=LOAD_SECONDS)
    loaded = re.findall(r"^Loaded image(?:\(s\))?(?: ID)?: (\S+)", said, re.MULTILINE)
    if len(loaded) != 1:
        raise StudyError(f"images: {archive.name!r} holds {len(loaded)} images; allowed: an archive of one image")
    return str(loaded[0])


def state(engine: str, name: str) -> State | None:
    """Return the state of the container ``name``. None if there is none, or if the engine does not answer."""
    try:
        values = inspect(engine, "container", name)["State"]
    except StudyError:
        return None
    return State(
        running=bool(values.get("Running")),
        started=not str(values.get("StartedAt", "")).startswith("0001-"),
        exit_code=int(values.get("ExitCode", 0)),
        oom_killed=bool(values.get("OOMKilled")),
    )


def remove(engine: str, name: str) -> None:
    """Stop and remove a container, if it exists and the engine answers."""
    try:
        ask(engine, "rm", "--force", "--volumes", name)
    except StudyError:
        return  # no such container; or the engine does not answer, and the next start removes the container
