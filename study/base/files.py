"""Files: written whole or not at all, named by their content."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from study.base.errors import StudyError

PACKAGE = Path(__file__).parent.parent
ROOT = PACKAGE.parent


def digest(value: Any) -> str:
    """Return the first eight hex digits of the SHA-256 of ``value`` as canonical JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:8]


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of the file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def code_sha256(patterns: Iterable[str]) -> str:
    """Return the SHA-256 over the files of the package that match ``patterns`` (globs), their names and contents."""
    files = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def stat_of(path: Path) -> list[Any]:
    """Return [name, size in bytes, modification time in ns] of a file, which is cheap enough for every start."""
    status = path.stat()
    return [path.name, status.st_size, status.st_mtime_ns]


def write_if_changed(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in one piece. Leave the file and its time alone if it already holds ``text``."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)


def write_new(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in one piece. Raise :class:`StudyError` if the file exists; it stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.stem[:60]}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        _publish(name, path)
    except FileExistsError:
        raise StudyError(f"{path.name}: this record exists already and is kept") from None
    finally:
        Path(name).unlink(missing_ok=True)


def _publish(temporary: str, path: Path) -> None:
    """Give the complete file its name. Unlike a rename, a link fails if the name is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError from None
        Path(temporary).rename(path)
