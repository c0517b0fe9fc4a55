"""What a process left, and how it ended.

What a container left is hostile until checked: a user's code, or a picture, may have written it.
"""

import filecmp
import os
import shutil
import signal
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from study.artifacts.record import JobResult
from study.base.errors import StudyError
from study.base.files import remove_tree, whole
from study.base.privacy import anonymous
from study.host.engine.base import last_words
from study.host.supervise import Ended

DEEPEST = 20
"""Folders below each other that a step of ours makes at most."""
MOST_SAID = 300
"""Characters of a process's own last words in a record."""


def discard_odd(folder: Path, limits: Mapping[str, int]) -> None:
    """Remove each of these files of ``folder`` that is no plain file, or has more bytes than its
    limit.

    A link would be followed to a file of the caller.
    """
    with suppress(OSError):  # another user's: it can then be read, or is not
        folder.chmod(0o700)
    for path, limit in ((folder / name, limit) for name, limit in limits.items()):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                remove_tree(path)
            elif not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                path.unlink()


def lend(results: Path, inside: Path, folders: Iterable[Path]) -> None:
    """Copy ``folders`` of earlier steps, relative to both, into ``inside``, for whoever is the user
    there to write.

    A link would let the container change the file itself.
    """
    for folder in (inside / folder for folder in folders):
        earlier = results / folder.relative_to(inside)
        folder.mkdir(parents=True, exist_ok=True)
        if earlier.is_dir():
            shutil.copytree(earlier, folder, copy_function=shutil.copyfile, dirs_exist_ok=True)
        open_to_all(folder)


def open_to_all(folder: Path) -> None:
    """Let whoever is the user in a container write a folder and all below it."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)


def take(inside: Path, results: Path, wanted: Iterable[Path]) -> None:
    """Copy the plain files at ``wanted``, files or folders relative to both, from ``inside`` into
    ``results``.

    Manifests come last, because they say that the rest is there. Files that are unfinished are
    left. The copies are the caller's, with the mode that the caller's new files have. Raise
    :class:`StudyError` for a link or a device: nothing of ours makes one there.
    """
    found = set().union(*(_below(inside, name) for name in wanted))
    for path in sorted(found, key=lambda path: (path.name == "manifest.json", path)):
        _copy(path, results / path.relative_to(inside))


def _below(inside: Path, name: Path) -> Iterator[Path]:
    """Yield the finished files at a place below ``inside``, if no folder on the way to it is a
    link."""
    for place in [inside / parent for parent in reversed(name.parents)]:
        if place.is_symlink():
            raise _odd(place)
    yield from _files(inside / name, 0)


def _odd(place: Path) -> StudyError:
    return StudyError(
        f"{place.name!r}: the container left a link or "
        "a device in place of a file; nothing is taken"
    )


def _files(place: Path, depth: int) -> Iterator[Path]:
    """Yield the finished files at a place, and refuse what is neither a plain file nor a folder.

    A hard link cannot leave the container's own mount, so that it is a file of the container.
    """
    try:
        status = place.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        if depth > DEEPEST:
            raise StudyError(
                f"{place.name!r}: the container left more than {DEEPEST} folders below each other"
            )
        for path in sorted(place.iterdir()):
            yield from _files(path, depth + 1)
    elif not stat.S_ISREG(status.st_mode):
        raise _odd(place)
    elif place.suffix not in (".tmp", ".lock"):
        yield place


def _copy(source: Path, target: Path) -> None:
    if target.is_file() and filecmp.cmp(source, target, shallow=False):
        return
    # The folders above were seen a moment ago, and the container is gone: only the last name can
    # still be a link.
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    with (
        os.fdopen(descriptor, "rb") as content,
        whole(target) as temporary,
        temporary.open("xb") as copy,
    ):
        shutil.copyfileobj(content, copy, 2**20)


KILLED = ("is killed by signal", "ended by SIGKILL")
"""Words in the message of a process that lost another one: torch's of a loader's worker, ours of a
rank."""


def result_of(path: Path, end: Ended, memory_gib: float | None = None) -> JobResult:
    """Return the result that the process wrote to ``path``, or else an outcome derived from
    ``end``.

    ``memory_gib`` is the run's limit, which the message names. An exit code of a container above
    128 is a signal.
    """
    if path.is_file():
        try:
            result = JobResult.of_file(path)
            # On the host the kernel counts for others too: a failure of its own is not another's
            # lack of memory.
            if (
                result.outcome == "failed"
                and end.oom_killed
                and any(word in str(result.message) for word in KILLED)
            ):
                return result.model_copy(update={"outcome": "out_of_memory"})
            return result
        except (OSError, StudyError) as error:
            return JobResult(
                outcome="failed", message=anonymous(f"the process left no valid result: {error}")
            )
    return without_result(end, memory_gib)


def without_result(end: Ended, memory_gib: float | None) -> JobResult:
    """Return the outcome of a process that left no result, derived from its end and its last
    words."""
    if end.oom_killed and not end.trouble:
        limit = f", at its limit of {memory_gib:g} GiB (limits.memory_gib)" if memory_gib else ""
        return JobResult(
            outcome="out_of_memory",
            message=f"the kernel killed the process for lack of memory{limit}",
        )
    if end.trouble:
        message = end.trouble
    elif name := signal_name(end.code):
        message = f"the process was ended by {name}"
    else:
        said = f"; it said: {last_words(end.tail)[:MOST_SAID]}" if end.tail else ""
        message = f"the process ended with exit code {end.code} and left no result{said}"
    return JobResult(outcome="failed", message=anonymous(message))


def signal_name(code: int) -> str | None:
    """Return the name of the signal behind an exit code, or None.

    The code of a child process is negative for a signal; that of a container or a shell is above
    128.
    """
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
