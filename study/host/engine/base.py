"""What container engines are asked, the values that their answers become, and the label that tells
of a launcher."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from study.base.errors import StudyError

ANSWER_SECONDS = 30
LOAD_SECONDS = 3600
BUILD_SECONDS = 7200


class StoredImage(NamedTuple):
    """An image that the engine has, which runs by its id. ``digest`` is its checksum in a
    registry."""

    id: str
    digest: str | None = None
    labels: Mapping[str, str] = {}


class State(NamedTuple):
    """A container and its state, as its engine describes them."""

    name: str
    labels: Mapping[str, str]
    running: bool
    started: bool
    exit_code: int
    oom_killed: bool


class Trouble(NamedTuple):
    """The reason why something cannot be used.

    ``detail`` is the engine's own message. It may name hosts, so records must not hold it.
    """

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


def ask(program: str, *arguments: str, seconds: float = ANSWER_SECONDS) -> str:
    """Return the program's standard output. Raise :class:`StudyError` if it fails or gives no
    answer in ``seconds``."""
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
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
    """Return the line of a program's output that names its error: the last with such a word, else
    the last line."""
    lines = [
        line.strip()
        for line in (text.splitlines() if isinstance(text, str) else text)
        if line.strip()
    ]
    telling = [
        line
        for line in lines
        if re.search(r"error|cannot|denied|no such|not found", line, re.IGNORECASE)
    ]
    return ([*lines, *telling] or ["no message"])[-1]


def launcher_label() -> str:
    """Return a label of this process (namespace, number, start), from which others can tell whether
    it still runs."""
    return f"{_namespace()}.{os.getpid()}.{_start_of(os.getpid())}"


def _namespace() -> str:
    """Return the identity of this start of the kernel and of this namespace of process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
        return boot + "-" + re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - no path, a name
    except OSError:
        return "0"


def _start_of(number: int) -> str | None:
    """Return the start time of a process, in the kernel's ticks. None if it is gone or hidden from
    us."""
    try:
        return (
            Path(f"/proc/{number}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rsplit(")", 1)[1]
            .split()[19]
        )
    except (OSError, IndexError):
        return None


def is_alive(label: str) -> bool:
    """Return whether the launcher with this label may still run. One in another namespace is
    assumed to run."""
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
