"""What every container engine can be told and asked, the values that its answers become, and the removal of containers
whose launcher is gone. Each engine is one class.
"""

import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TextIO

from study.artifacts.prepared import ImageRequest
from study.base.errors import StudyError
from study.host.engine.container import LAUNCHER, USER, WORK, Box

ANSWER_SECONDS = 30
PULL_SECONDS = 600
LOAD_SECONDS = 3600
BUILD_SECONDS = 7200


@dataclass(frozen=True)
class StoredImage:
    """An image that the engine has. ``run_as`` is the name by which it runs; ``digest`` its checksum in a registry."""

    id: str
    run_as: str
    digest: str | None = None
    created: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """A container and its state, as its engine describes them."""

    name: str
    labels: Mapping[str, str]
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


def ask(program: str, *arguments: str, seconds: float = ANSWER_SECONDS) -> str:
    """Return the program's standard output. Raise :class:`StudyError` if it fails or gives no answer in ``seconds``."""
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise StudyError(f"{program} is not installed") from None
    except OSError as error:
        raise StudyError(f"{program} cannot be started ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise StudyError(f"`{program} {arguments[0]}`: no answer within {seconds:.0f} s") from None
    if done.returncode:
        raise StudyError(f"`{program} {arguments[0]}`: {last_words(done.stderr or done.stdout)}")
    return done.stdout


def last_words(text: str | Sequence[str]) -> str:
    """Return the line of a program's output that names its error: the last with such a word, else the last line."""
    lines = [line.strip() for line in (text.splitlines() if isinstance(text, str) else text) if line.strip()]
    telling = [line for line in lines if re.search(r"error|cannot|denied|no such|not found", line, re.IGNORECASE)]
    return ([*lines, *telling] or ["no message"])[-1]


class Engine(ABC):
    """A container engine. ``name`` is also the name of its client program, and stands in plans and records."""

    name: ClassVar[str]

    @abstractmethod
    def argv(self, box: Box) -> list[str]:
        """Return the command line that executes ``box``.

        The container sees only its mounts, and has no capabilities, no writable root, and no network unless ``box``
        asks for it. Raise :class:`StudyError` if a path cannot be mounted.
        """

    def variables(self, box: Box) -> dict[str, str]:
        """Return the environment variables of the container. No other variable of the caller reaches it."""
        values = {
            "HOME": "/tmp",  # noqa: S108 - fastai and torch.hub write there
            "USER": USER,
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108
            "PYTHONPATH": WORK,
            "PYTHONUNBUFFERED": "1",
            "STUDY_CONTAINER": self.name,
        }
        gpus = {"CUDA_VISIBLE_DEVICES": ""} if box.gpus is None else self._gpu_variables(box.gpus)
        return values | gpus | dict(box.environment)

    @abstractmethod
    def _gpu_variables(self, gpus: tuple[str, ...]) -> dict[str, str]:
        """Return the variables that give a container the GPUs of these names; empty means all GPUs."""

    def why_not(self) -> Trouble | None:
        """Return the reason why the engine cannot be used. None if it answers."""
        if shutil.which(self.name) is None:
            return Trouble(f"{self.name} is not installed")
        try:
            self.version()
        except StudyError as error:
            return Trouble(f"{self.name} does not answer", str(error))
        return None

    @abstractmethod
    def version(self) -> str:
        """Return the version of the engine itself, not of its client."""

    def is_rootless(self) -> bool:
        """Return whether the caller is root inside, while other users inside are unknown here."""
        return False

    def explained(self, said: str) -> str:
        """Return the last words of the engine's client, with what to do where it is known."""
        return said

    def gpu_trouble(self) -> Trouble | None:
        """Return the reason why a container cannot be given a GPU, as far as known before one starts, or None."""
        return None

    @abstractmethod
    def image(self, reference: str) -> StoredImage | None:
        """Return the image with a reference or an id. None if the engine has none."""

    @abstractmethod
    def image_trouble(self, wanted: ImageRequest, fetch: bool) -> Trouble | None:
        """Return the reason why the engine cannot get the image. None if it is there or can be built.

        With ``fetch`` a missing image is pulled, because only a pull shows whether it can be pulled.
        """

    @abstractmethod
    def build(self, wanted: ImageRequest, log: TextIO) -> float | None:
        """Build the image if it is missing. Return the duration in seconds, or None if it was there.

        Raise :class:`StudyError` if the build fails.
        """

    @abstractmethod
    def bring(self, wanted: ImageRequest) -> str:
        """Load or pull the image if it is missing. Return the reference by which the engine knows it."""

    @abstractmethod
    def containers(self, label: str) -> list[str]:
        """Return the ids of the containers with ``label``, running or not."""

    @abstractmethod
    def state(self, identity: str) -> State | None:
        """Return the state of a container. None if there is none, or if the engine does not answer."""

    @abstractmethod
    def remove(self, identity: str) -> None:
        """Stop and remove a container, if it exists and the engine answers."""


def launcher_label() -> str:
    """Return a label of this process (namespace, number, start), from which others can tell whether it still runs."""
    return f"{_namespace()}.{os.getpid()}.{_start_of(os.getpid())}"


def _namespace() -> str:
    """Return the identity of this start of the kernel and of this namespace of process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
        return boot + "-" + re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - no path, a name
    except OSError:
        return "0"


def _start_of(number: int) -> str | None:
    """Return the start time of a process, in the kernel's ticks. None if it is gone or hidden from us."""
    try:
        return Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return None


def _is_alive(label: str) -> bool:
    """Return whether the launcher with this label may still run. One in another namespace is assumed to run."""
    namespace, number, start = (label.split(".") + ["", "", ""])[:3]
    if namespace != _namespace():
        return namespace[:8] == _namespace()[:8] or not re.match(r"[0-9a-f]{8}-", namespace)
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:  # another user's process, so it exists
        pass
    return _start_of(int(number)) in (start, None)


def remove_orphans(engine: Engine) -> list[str]:
    """Remove the containers of killed launchers. Return the names of running containers of launchers that may run."""
    at_work = []
    for identity in engine.containers(LAUNCHER):
        found = engine.state(identity)
        if found is None:
            continue  # gone in the meantime
        if not _is_alive(found.labels.get(LAUNCHER, "")):
            engine.remove(identity)
        elif found.running:
            at_work.append(found.name)
    return at_work
