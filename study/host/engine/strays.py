"""Containers whose launcher is gone."""

import os
import re
from pathlib import Path

from study.base.errors import StudyError
from study.host.engine.client import ask, inspect, remove
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


def remove_strays(engine: str) -> list[str]:
    """Remove the containers of killed launchers. Return the names of running containers of launchers that may run."""
    if engine == "apptainer":  # no daemon: its containers are processes, which end with their launcher
        return []
    found = ask(engine, "ps", "--all", "--quiet", "--filter", f"label={LAUNCHER}").split()
    at_work = []
    for identifier in found:
        try:
            values = inspect(engine, "container", identifier)
        except StudyError:
            continue  # gone in the meantime
        label = str(values["Config"]["Labels"].get(LAUNCHER, ""))
        if not _is_alive(label):
            remove(engine, identifier)
        elif values["State"].get("Running"):
            at_work.append(str(values["Name"]).removeprefix("/"))
    return at_work
