"""Files: written whole or not at all, named by their content; and the folder of our own, with its
commit."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from study.base.errors import StudyError
from study.base.privacy import node

PACKAGE = Path(__file__).parent.parent
INSTALLED = PACKAGE.parent / "study_home"
"""Where a wheel holds the workflow, studies, replications, Dockerfile and locks: `setup.py` puts
them there."""
ROOT = INSTALLED if INSTALLED.is_dir() else PACKAGE.parent
"""The checkout, or what the installed package has in its place."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""How the system says that a file has no room: a full disk, a used-up quota, a limit of size."""
LARGEST_LOCK, LARGEST_WEIGHTS = 2**26, 2**37
"""Bytes of files that a study names, and whose checksums each start computes."""
CUT_OFF = 65_536
"""Free bytes of a disk that a large write has filled."""


def digest(value: Any) -> str:
    """Return the first eight hex digits of the SHA-256 of ``value`` as canonical JSON."""
    return json_sha256(value)[:8]


def json_sha256(value: Any) -> str:
    """Return the SHA-256 of ``value`` as canonical JSON, in hex."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
    ).hexdigest()


def reason(error: OSError) -> str:
    """Return why the system refused a path, in words about what lies there."""
    path = Path(str(error.filename))
    with suppress(OSError):  # a name that is too long
        for one in (path, *path.parents):
            if one.is_symlink() and not one.exists():
                return f"{one} is a link to {str(one.readlink())!r}, where nothing is"
            if one.is_file() and isinstance(error, FileExistsError | NotADirectoryError):
                return f"{one} is a file; allowed: a folder"
    return error.strerror or str(error)


def check_plain(path: Path, largest: int) -> None:
    """Raise :class:`StudyError` if ``path`` is there and is no file, or has more than ``largest``
    bytes.

    A pipe may never begin, and a device never end.
    """
    if path.exists() and not path.is_file():
        raise StudyError("it is not a file")
    if path.exists() and path.stat().st_size > largest:
        raise StudyError(f"it has more than {largest >> 20} MiB")


def existing_file(given: str, largest: int) -> Path | None:
    """Return the file at a path that a study gives; None if there is none, also for a name that no
    file can have, for a home of nobody's, and for more than ``largest`` bytes.

    A sparse file of a terabyte takes no room on a disk, and its checksum an hour.
    """
    with suppress(OSError, RuntimeError, ValueError):
        path = Path(given).expanduser()
        return path if path.is_file() and path.stat().st_size <= largest else None
    return None


def read_text(path: Path, largest: int) -> str:
    """Return the text of a file of at most ``largest`` bytes. Raise :class:`StudyError` if it is no
    such file."""
    check_plain(path, largest)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise StudyError("it is not text in UTF-8") from None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of the file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_of(path: Path) -> str:
    """Return the SHA-256 of a user's file, or why it cannot be read. A copy has another time, and
    the same content."""
    try:
        status = path.stat()
        return _content_of(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        return str(error.strerror)


@cache
def _content_of(path: Path, size: int, changed: int) -> str:
    return file_sha256(path)


def code_sha256(patterns: Iterable[str]) -> str:
    """Return the SHA-256 over the files of the package that match ``patterns`` (globs), their names
    and contents."""
    return sha256_below(PACKAGE, set().union(*map(PACKAGE.glob, patterns)))


def sha256_below(folder: Path, files: Iterable[Path]) -> str:
    """Return the SHA-256 over files of a folder, their names in it and contents."""
    total = hashlib.sha256()
    for path in sorted(files):
        name = path.relative_to(folder).as_posix()
        total.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def package_sha256(*folders: str) -> str:
    """Return the SHA-256 over all files of the package but compiled ones, or of some of its
    folders."""
    below = chain.from_iterable((PACKAGE / folder).rglob("*") for folder in folders or [""])
    files = [path for path in below if path.is_file() and path.parent.name != "__pycache__"]
    return sha256_below(PACKAGE, files)


def remove_tree(folder: Path) -> None:
    """Remove a folder and all below it, however deep it is and whatever rights it has; what cannot
    be removed stays.

    Python's own removal ends in an error in a tree of some hundred folders.
    """
    if folder.exists():
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            with suppress(FileNotFoundError):  # a PATH without them
                subprocess.run([*command, "--", str(folder)], capture_output=True)
        with suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def whole(path: Path, publish: Callable[[Path, Path], object] = Path.replace) -> Iterator[Path]:
    """Yield the path of a temporary file beside ``path``, and give that file the name ``path`` at
    the end.

    A reader therefore sees the whole file or the earlier one. If the block raises, the temporary
    file is removed. ``publish(temporary, path)`` gives the name; by default it replaces an existing
    file. Raise :class:`StudyError` if ``path`` is a folder or a device, or if the disk is full.
    """
    if path.exists() and not path.is_file():
        raise StudyError(f"{path}: cannot be written: there is something else than a file")
    temporary = path.with_name(
        f".{path.name[:60]}.{node()}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    )
    try:
        with room_for(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what :func:`whole` was writing below ``folder`` in processes of this machine that are
    gone."""
    for path in folder.rglob(".*.tmp"):
        *_, machine, owner, _, _ = ["", *path.name.split(".")]
        here = machine == str(node()) and re.fullmatch("[0-9]{1,9}", owner)
        if here and path.is_file() and not psutil.pid_exists(int(owner)):
            path.unlink(missing_ok=True)


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """Raise :class:`StudyError` that names ``path`` if the block finds no room for it on the
    disk."""
    try:
        yield
    except OSError as error:
        # NumPy gives no number to a write that was cut off.
        disk = next(folder for folder in path.absolute().parents if folder.exists())
        number = error.errno or (errno.ENOSPC if shutil.disk_usage(disk).free < CUT_OFF else 0)
        if number not in FULL:
            raise
        raise StudyError(
            f"{path}: cannot be written ({os.strerror(number)}); every record that is there "
            "already is kept: make room, and start again"
        ) from None


def write_whole(path: Path, content: str) -> None:
    """Write ``content`` as UTF-8 to ``path`` in one piece."""
    with whole(path) as temporary:
        temporary.write_bytes(content.encode())


def write_if_changed(path: Path, content: str) -> None:
    """Write ``content`` to ``path`` in one piece. Leave the file and its time alone if it already
    holds ``content``."""
    if not path.is_file() or path.read_bytes() != content.encode():
        write_whole(path, content)


def write_new(path: Path, content: str) -> None:
    """Write ``content`` to ``path`` in one piece, and wait until the disk holds it.

    Raise :class:`StudyError` if the file exists; it stays as it is.
    """
    try:
        with whole(path, _name_once) as temporary, temporary.open("xb") as file:
            file.write(content.encode())
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise StudyError(f"{path.name}: this record exists already and is kept") from None


def _name_once(temporary: Path, path: Path) -> None:
    """Give the complete file its name. Unlike a rename, a link fails if the name is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError from None
        temporary.rename(path)


def replications() -> dict[str, Path]:
    """Return the folder of each replication by its name: those where a start is made, then our
    own."""
    folders: dict[str, Path] = {}
    for base in (Path.cwd(), ROOT):
        for folder in sorted((base / "replications").glob("*/")):
            if not folder.name.startswith(("_", ".")):
                folders.setdefault(folder.name, folder)
    return folders


def git_commit() -> str | None:
    """Return the checkout's commit. None without a checkout, git or a commit."""
    return _git("rev-parse", "HEAD")


def git_source() -> str | None:
    """Return the public address from which the checkout was cloned; None for a path, and for one
    that names a user."""
    address = _git("remote", "get-url", "origin")
    return address if address and re.fullmatch("https://[^@]+", address) else None


def git_is_changed() -> bool | None:
    """Return whether a file that git tracks differs from the commit. None without a checkout, git
    or a commit."""
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return None if changed is None or git_commit() is None else bool(changed)


def _git(*arguments: str) -> str | None:
    if ROOT == INSTALLED:  # an environment may lie in a user's repository
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
