"""Containers whose launcher is gone."""

import os
import re
from pathlib import Path

from study.host.engine.base import Engine
from study.host.engine.container import LAUNCHER


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


def remove_strays(engine: Engine) -> list[str]:
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
