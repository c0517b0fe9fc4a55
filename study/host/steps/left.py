"""What a container left. It is hostile until checked: a user's code, or a picture, may have written it."""

import filecmp
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from study.base.errors import StudyError
from study.base.files import whole

MOST_BYTES = 2**30
"""Largest file that is read into memory: a run's samples of a week have a tenth of it."""


def discard_odd(folder: Path, names: Iterable[str]) -> None:
    """Remove each of these files of ``folder`` that is no plain file, or too large to be read into memory.

    A link would be followed to a file of the caller.
    """
    for path in (folder / name for name in names):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                shutil.rmtree(path)
            elif not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                path.unlink()


def take(inside: Path, results: Path, wanted: Iterable[Path]) -> None:
    """Copy the plain files at ``wanted``, files or folders relative to both, from ``inside`` into ``results``.

    Manifests come last, because they say that the rest is there. Files that are unfinished are left. The copies are the
    caller's, with the mode that the caller's new files have. Raise :class:`StudyError` for a link or a device: nothing
    of ours makes one there.
    """
    found = sorted({path for name in wanted for path in _files(inside / name)}, key=_manifests_last)
    for path in found:
        _copy(path, results / path.relative_to(inside))


def _manifests_last(path: Path) -> tuple[bool, Path]:
    return path.name == "manifest.json", path


def _files(place: Path) -> Iterator[Path]:
    """Yield the finished files at a place, and refuse what is neither a plain file nor a folder.

    A hard link cannot leave the container's own mount, so that it is a file of the container.
    """
    try:
        status = place.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        for path in sorted(place.iterdir()):
            yield from _files(path)
    elif not stat.S_ISREG(status.st_mode):
        raise StudyError(f"{place.name!r}: the container left a link or a device in place of a file; nothing is taken")
    elif place.suffix not in (".tmp", ".lock"):
        yield place


def _copy(source: Path, target: Path) -> None:
    if target.is_file() and filecmp.cmp(source, target, shallow=False):
        return
    # The folders above were seen a moment ago, and the container is gone: only the last name can still be a link.
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as content, whole(target) as temporary, temporary.open("xb") as copy:
        shutil.copyfileobj(content, copy, 2**20)
