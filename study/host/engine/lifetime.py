"""Execute one command in a container: prepare its mounts, start it, report how it ended.

The launcher calls this module, and this module calls the engines.
"""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from study.base.devices import usable_cpus, visible_gpus
from study.base.errors import StudyError, say
from study.base.files import remove_tree, remove_unfinished
from study.base.privacy import node
from study.base.processes import oom_kills
from study.config.sections import Limits
from study.config.settings import Settings
from study.host.engine import container
from study.host.engine.base import is_alive, last_words, launcher_label
from study.host.engine.container import Box, Mount, check_readable, shared_memory_bytes
from study.host.engine.docker import Docker
from study.host.engine.engine_choice import ENGINES
from study.host.supervise import Ended, Spawned, supervise

SCRATCH_PREFIX = f".scratch-{node()}-"
"""Each machine removes what its own killed runs left: a run may be at work on another one."""
CONFLICTS = 10
"""Number of attempts to start a container while another one has its name."""
REMOVAL_SECONDS = 1.0
"""Seconds after which a container that someone removes is gone."""
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


@contextmanager
def scratch_folder(results: Path) -> Iterator[Path]:
    """Yield a folder that any user may write, inside one that only the caller may enter. Remove it
    at the end.

    It lies in ``results``, so that engines that see only the user's home see it, and files move
    from it without a copy.
    """
    results.mkdir(parents=True, exist_ok=True)
    private = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=results)).resolve()
    try:
        scratch = private / "scratch"
        for folder in (scratch, scratch / "tmp"):
            folder.mkdir()
            folder.chmod(0o777)
        yield scratch
    finally:
        remove_tree(private)


def enter(
    engine: Docker,
    image: str,
    command: Sequence[str],
    scratch: Path,
    mounts: Sequence[Mount],
    log: TextIO,
    title: str,
    *,
    settings: Settings | None = None,
    limits: Limits = Limits(),
    environment: Mapping[str, str] | None = None,
    gpus: bool = False,
    heard: Callable[[str], None] | None = None,
    full: Callable[[], str | None] = lambda: None,
    folder: str = container.WORK,
) -> Ended:
    """Execute ``command`` in ``image``, from ``folder`` there, and return how it ended. ``heard``
    gets what it prints, and ``full`` may say why it is ended.

    With ``settings`` it is a measurement: the only container of its name on this machine, under the
    settings' limits. Otherwise ``limits`` hold. Raise :class:`StudyError` if nothing was started.
    After a start every failure is an end.
    """
    user = container.user_inside(os.getuid(), os.getgid(), engine.is_rootless)
    check_readable(mounts, user)
    limits = settings.limits if settings else limits
    cpus = allowed_cpus(limits.cpus)
    box = Box(
        image=image,
        command=command,
        scratch=scratch,
        name=container.NAME if settings else f"study-prepares-{os.getpid()}",
        user=user,
        mounts=mounts,
        environment=environment or {},
        groups=tuple(os.getgroups()) if user[0] not in (0, container.UNPRIVILEGED) else (),
        labels={container.LAUNCHER: launcher_label()},
        gpus=tuple(visible_gpus()) if gpus else None,
        shared_memory_bytes=shared_memory_bytes(settings, len(cpus or ()) or usable_cpus())
        if settings
        else Box.shared_memory_bytes,
        memory_bytes=int(limits.memory_gib * 2**30) if limits.memory_gib else None,
        cpus=cpus,
        folder=folder,
    )
    line, identity = engine.argv(box), container.id_file(scratch)
    room = shutil.disk_usage(scratch).free // 2
    # It is removed in every case, and tried again while another one has its name.
    for _ in range(CONFLICTS):
        identity.unlink(missing_ok=True)
        kills = oom_kills()
        try:
            # The client hands SIGTERM on to the container.
            client = Spawned(
                line, container.environment("cuda", os.environ), at_our_death=signal.SIGTERM
            )
            ended = supervise(
                client,
                log,
                title,
                limits.timeout_seconds,
                lambda: full() or overfull(scratch, room),
                heard,
            )
            if ended.trouble:
                return ended
            if made(identity) or "already in use" not in " ".join(ended.tail):
                return _of_the_container(engine, made(identity), ended, oom_kills() > kills)
        finally:
            if made(identity):
                engine.remove(made(identity))
        wait_for_turn(engine, title)
        time.sleep(1)
    raise StudyError(
        f"{engine.name}: a container {box.name} exists that belongs to no running launcher; remove "
        f"it with: {engine.name} rm --force {box.name}"
    )


def made(identity: Path) -> str:
    """Return the id of the container that was made, from its file ``identity``. Empty if none was
    made."""
    try:
        return identity.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def allowed_cpus(limit: int | None) -> tuple[int, ...] | None:
    """Return the numbers of the first ``limit`` CPUs that this process may use, or of all of them
    without a limit.

    None means no restriction.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    if limit is None and len(allowed) == os.cpu_count():
        return None
    return tuple(allowed[:limit])


def wait_for_turn(engine: Docker, title: str) -> None:
    """Remove containers of killed launchers, and wait while the container of another launcher
    measures here."""
    said = False
    while container.NAME in remove_orphans(engine):
        if not said:
            say(f"{title}: waiting until the container {container.NAME} ends")
        said = True
        time.sleep(1)


def _of_the_container(engine: Docker, identity: str, ended: Ended, kernel_killed: bool) -> Ended:
    """Return the end of a container, from the end of the engine's client and the engine's state of
    the container."""
    said, trouble = last_words(ended.tail), engine.why_not()
    if "container-init binary not found" in said:  # podman's words
        said += "; install catatonit"
    if not identity:
        raise StudyError(f"{engine.name} made no container: {trouble or said}")
    if trouble:
        return replace(ended, trouble=f"{engine.name} stopped answering during the run")
    state = engine.state(identity)
    if state and ended.code in KILLED and not state.oom_killed:
        time.sleep(REMOVAL_SECONDS)  # who removes a container kills it first
        state = engine.state(identity)
    if state is None:
        return replace(ended, trouble="the container was removed from outside")
    if state.running:
        how = signal.Signals(-ended.code).name if ended.code < 0 else f"exit code {ended.code}"
        cut_short = (
            f"the client of {engine.name} ended ({how}) before its container, which was stopped"
        )
        return replace(ended, trouble=cut_short)
    if not state.started:
        raise StudyError(f"{engine.name} did not start the container: {said}")
    # If the whole machine ran out of memory, and not the container's limit, only the kernel reports
    # it.
    killed = state.oom_killed or (kernel_killed and state.exit_code in KILLED)
    return replace(ended, code=state.exit_code, oom_killed=killed)


def overfull(folder: Path, room: int) -> str | None:
    """Return a reason if a folder has more than ``room`` bytes, or hardly anything is left of the
    disk, or None.

    An endless output, or files without a name, fill the disk, too. A tree that is too deep for a
    look counts as full.
    """
    with suppress(OSError, RecursionError):
        if bytes_below(folder) <= room and shutil.disk_usage(folder).free >= min(2**30, room // 2):
            return None
    return (
        f"it wrote more than {room / 2**30:.3g} GiB, half of the disk's free space, or the "
        "disk filled otherwise"
    )


def bytes_below(folder: Path) -> int:
    """Return the bytes on disk of all files below a folder. What vanishes meanwhile does not
    count."""
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += 512 * os.lstat(os.path.join(at, name)).st_blocks  # noqa: PTH118 - many files
    return total


def sweep(results: Path) -> None:
    """Remove what a killed start left: containers of launchers that are gone, scratch folders,
    unfinished files."""
    remove_unfinished(results)
    for engine in ENGINES.values():
        if engine.why_not() is None:
            with suppress(StudyError):
                remove_orphans(engine)
    for folder in results.glob(f"{SCRATCH_PREFIX}*"):
        remove_tree(folder)


def remove_orphans(engine: Docker) -> list[str]:
    """Remove the containers of killed launchers. Return the names of running containers of
    launchers that may run."""
    at_work = []
    for identity in engine.containers(container.LAUNCHER):
        found = engine.state(identity)
        if found is None:
            continue  # gone in the meantime
        if not is_alive(found.labels.get(container.LAUNCHER, "")):
            engine.remove(identity)
        elif found.running:
            at_work.append(found.name)
    return at_work
