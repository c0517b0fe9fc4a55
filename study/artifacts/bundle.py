"""A bundle of results, read: it is unpacked whole or not at all, into a new folder, and never
outside it.

Who made the archive is not known. Only files of a bundle are written, each as a plain file of its
own name, and nothing before every entry has been looked at. What else an archive holds is left out,
such as the analysis in one of before: it is made anew from the records.
"""

import os
import re
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from study.artifacts.plan import FILE_NAME
from study.base.errors import StudyError
from study.base.files import file_sha256, read_text, remove_tree, room_for
from study.base.strict import LARGEST

CHECKSUMS = "checksums.sha256"
"""The file that lists the others as `sha256sum` does: a checksum, two spaces, a path. Bundles of
before have none."""
ASIDE = ("", "superseded/", "disturbed/", "broken/")
HELD = (
    "plan.json",
    "*/plan.json",
    *(f"*/records/{aside}*.json" for aside in ASIDE),
    *(f"*/telemetry/{aside}*.parquet" for aside in ASIDE),
    "*/weights/*.json",
    "data/*/manifest.json",
    "images/*.json",
    "environments/*.json",
    "warm_up_runs/*.json",
    "warm_up_runs/*.parquet",
    "config/studies/*.yaml",
    CHECKSUMS,
)
"""The files of a bundle; a star stands for one name."""
PATTERN = re.compile("|".join(re.escape(path).replace(r"\*", FILE_NAME.pattern) for path in HELD))
MOST_FILES = 200_000
MOST_BYTES = 2**34
"""Bytes of all files of an archive, unpacked."""
MOST_TIMES = 200
"""How many times as large as the archive its files may be: JSON shrinks to a tenth, a bomb to a
thousandth."""
INNER = re.compile(r"\.(zip|tar|tgz|gz|7z)$|^(?!__MACOSX/).+/[^/]+/plan\.json$", re.IGNORECASE)
"""What a bundle in an archive of something else is called: an archive, or a folder of results."""
ENCRYPTED = 0x1
BROKEN = (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""How the standard library says that an archive is damaged, or of a kind that it cannot read."""


def is_held(path: str) -> bool:
    """Return whether a bundle may hold a file of this path."""
    return bool(PATTERN.fullmatch(path))


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a bundle into ``folder``, which must not exist.

    Raise :class:`StudyError`, and leave no file, if the archive is none, is damaged, does not fit
    its checksums, has an entry that leads out of the folder, or has more files or bytes than a
    bundle may have.
    """
    if os.path.lexists(folder):
        raise StudyError(
            f"{folder}: it exists already, and nothing is replaced: name another folder"
        )
    temporary = folder.with_name(f".{folder.name[:60]}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    with _opened(archive) as zipped:
        entries = _checked(zipped, archive)
        try:
            with room_for(folder):
                # Each is written as a plain file, and no more of it than the size that was checked.
                zipped.extractall(temporary, entries)
                _verify(temporary, [entry.filename for entry in entries], archive)
                temporary.rename(folder)
        except OSError as error:  # names that no disk holds, or that are a file and a folder
            raise StudyError(
                f"{archive}: cannot be unpacked into {folder} ({error.strerror})"
            ) from None
        finally:
            remove_tree(temporary)


def folder_of(archive: Path) -> Path:
    """Return the folder into which a bundle is unpacked if none is named: its own name without the
    ending."""
    return archive.with_suffix("") if archive.suffix else Path(f"{archive}.unpacked")


@contextmanager
def as_folders(given: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield the results folder of each path: a folder itself, a bundle unpacked for as long as the
    block lasts.

    A bundle lies there under its own path, so that what names the folder by its end names the
    bundle.
    """
    with TemporaryDirectory(prefix="study-bundle-") as scratch:
        try:
            folders = []
            for path in given:
                folder = Path(f"{scratch}{path.resolve()}") if path.is_file() else path
                if path.is_file() and not folder.exists():  # the same bundle may be given twice
                    unpack(path, folder)
                folders.append(folder)
            yield folders
        except StudyError as error:
            raise StudyError(str(error).replace(scratch, "")) from None


@contextmanager
def _opened(archive: Path) -> Iterator[ZipFile]:
    """Yield the archive. Raise :class:`StudyError` if it is none, or if it turns out to be damaged
    in the block."""
    if not archive.is_file():
        raise StudyError(f"{archive}: not a bundle: no such file")
    try:
        with ZipFile(archive) as zipped:
            yield zipped
    except BROKEN as error:
        raise StudyError(
            f"{archive}: not a bundle: not a zip archive, or a damaged one ({error})"
        ) from None


def _checked(zipped: ZipFile, archive: Path) -> list[ZipInfo]:
    """Return the files to unpack."""
    entries = zipped.infolist()
    if len(entries) > MOST_FILES:
        raise StudyError(f"{archive}: it has {len(entries)} entries; allowed: up to {MOST_FILES}")
    for entry in entries:
        if reason := _reason_against(entry):
            raise StudyError(f"{archive}: {entry.orig_filename!r} is not allowed: {reason}")
    held = [entry for entry in entries if is_held(entry.filename)]
    # On many disks two names that differ in case alone are one file.
    if len({entry.filename.casefold() for entry in held}) < len(held):
        raise StudyError(f"{archive}: not a bundle: two of its files have one name")
    inner = [entry.filename for entry in entries if INNER.search(entry.filename)]
    whole = any("/records/" in entry.filename for entry in held) or not inner
    if not (whole and any(entry.filename.endswith("/plan.json") for entry in held)):
        one = f", but {inner[0]!r}: unpack the archive, and take what is in it" if inner else ""
        raise StudyError(f"{archive}: not a bundle: it holds no <study>/plan.json{one}")
    size = sum(entry.file_size for entry in held)
    most = min(MOST_BYTES, MOST_TIMES * archive.stat().st_size)
    if size > most:
        raise StudyError(f"{archive}: unpacked it has {size} bytes; allowed: up to {most}")
    return held


def _reason_against(entry: ZipInfo) -> str | None:
    """Return why an archive with this entry is refused; None if it is not."""
    name = entry.orig_filename
    if name.startswith("/") or "\\" in name or ".." in name.split("/") or "\0" in name:
        return "a name leads from folder to folder with forward slashes, and out of none"
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or entry.flag_bits & ENCRYPTED:
        return "it is encrypted, or compressed by another method than deflate"
    return "it begins before the archive does" if entry.header_offset < 0 else None


def _verify(folder: Path, names: Sequence[str], archive: Path) -> None:
    """Raise :class:`StudyError` for the first file that differs from the list of checksums, if the
    bundle has one."""
    if CHECKSUMS not in names:
        return
    lines = read_text(folder / CHECKSUMS, LARGEST).splitlines()
    wanted = {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}
    for name in sorted({*names, *wanted} - {CHECKSUMS}):
        path = folder / name
        if name not in names or wanted.get(name) != file_sha256(path):
            raise StudyError(
                f"{archive}: {name!r} does not fit {CHECKSUMS}: the archive was edited or damaged"
            )
