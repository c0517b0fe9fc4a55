"""What a bundle of results holds, and how it is unpacked: whole or not at all, into a new folder, and never outside it.

Who made the archive is not known. An entry that would leave the folder, or is no plain file, refuses the whole archive;
a plain file that no bundle holds is left out. Nothing is written before every entry has been looked at.
"""

import os
import re
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader, FileIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from study.artifacts.layout import Results
from study.artifacts.plan import FILE_NAME
from study.base.errors import StudyError
from study.base.files import remove_tree, room_for
from study.base.strict import LARGEST

METADATA = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"
RULES = "workflow/rules/*.smk"
FILES = Results(Path())
ASIDE = ("", "superseded", "disturbed", "broken")
NAMED = 12
"""Number of names in a line, of which a folder may give thousands."""
Say = Callable[[str], None]
MOST_FILES = 200_000
MOST_BYTES = 2**34
"""Bytes of all files of a bundle, unpacked."""
MOST_TIMES = 200
"""How many times as large as the archive its files may be: JSON shrinks to a tenth, a bomb to a thousandth."""
LARGEST_LIST = 2**25
"""Bytes of the archive's list of entries, which is read at once: 200,000 entries with names of a hundred letters."""
ENCRYPTED = 0x1
BROKEN = (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
"""How the standard library says that an archive is damaged, or of a kind that it cannot read."""


@dataclass(frozen=True)
class Kind:
    """Files of one kind: ``*`` in the path stands for one name. A path that begins with it is a study's."""

    path: str
    description: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The paths of this kind."""
        return re.compile(re.escape(self.path).replace(r"\*", FILE_NAME.pattern))


KINDS = tuple(
    Kind(str(path), description)
    for path, description in (
        (FILES.plan("*"), "A study and its planned runs"),
        *(
            (FILES.records("*") / aside / "*.json", f"Raw samples of one run{aside and ', ' + aside}")
            for aside in ASIDE
        ),
        *((FILES.telemetry_folder("*") / aside / "*.parquet", "Utilisation, power and clocks") for aside in ASIDE),
        (FILES.weights("*", "*"), "The source of a model's weights, and the reason"),
        (FILES.timings("*"), "The table of the runs"),
        (FILES.fit("*"), "The analysis of the table"),
        *((FILES.figures("*") / f"*.{suffix}", "A figure, or the list of them") for suffix in ("json", "png", "svg")),
        (FILES.selection, "The names of the studies"),
        (FILES.report, "The report"),
        (FILES.manifest("*"), "Every image of a data set with its checksum; the images are not here"),
        (FILES.image("*"), "The image in which runs executed"),
        (FILES.environment("*"), "The packages with which runs executed on the host"),
        *((FILES.warm_up_runs / f"*.{suffix}", "A run before those that count") for suffix in ("json", "parquet")),
        (Path(WORKFLOW), "The workflow"),
        (Path(RULES), "Rules of the workflow"),
        (Path("config/studies/*.yaml"), "What a study declares"),
        (Path(METADATA), "The description of the bundle"),
    )
)


def kind_of(path: str) -> Kind | None:
    """Return the kind of a file by its path in a bundle. None if a bundle holds no such file."""
    return next((kind for kind in KINDS if kind.pattern.fullmatch(path)), None)


def unpack(archive: Path, folder: Path, say: Say) -> None:
    """Unpack a bundle into ``folder``, which must not exist. ``say`` gets a line for the files that are left out.

    Raise :class:`StudyError` with the entry that is not allowed, and leave no file; or if the archive is none, is
    damaged, or has more files or bytes than a bundle may have.
    """
    if os.path.lexists(folder):
        raise StudyError(f"{folder}: it exists already, and nothing is replaced: name another folder")
    temporary = folder.with_name(f".{folder.name[:60]}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    with _opened(archive) as zipped:
        entries, unknown = _checked(zipped, archive)
        say_names(f"{archive.name}: left out, because no bundle holds such a file", unknown, say)
        try:
            with room_for(folder):
                temporary.mkdir(parents=True)
                for entry in entries:
                    _extract(zipped, entry, temporary / entry.filename)
                temporary.rename(folder)
        finally:
            remove_tree(temporary)


def folder_of(archive: Path) -> Path:
    """Return the folder into which a bundle is unpacked if none is named: its own name without the ending."""
    return archive.with_suffix("") if archive.suffix else Path(f"{archive}.unpacked")


@contextmanager
def as_folders(given: Sequence[Path], say: Say) -> Iterator[list[Path]]:
    """Yield the results folder of each path: a folder itself, a bundle unpacked for as long as the block lasts.

    A bundle lies there under its own path, so that what names the folder by its end names the bundle.
    """
    with TemporaryDirectory(prefix="study-bundle-") as scratch:
        try:
            folders = []
            for path in given:
                folders.append(path if not path.is_file() else Path(f"{scratch}{path.resolve()}"))
                if path.is_file() and not folders[-1].exists():
                    unpack(path, folders[-1], say)
            yield folders
        except StudyError as error:
            raise StudyError(str(error).replace(scratch, "")) from None


def say_names(what: str, names: Sequence[str], say: Say) -> None:
    """Say ``what`` is true of these files in one line, which names the first of them; say nothing of none."""
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        say(f"{what}: {', '.join(names[:NAMED])}{more}")


class _Sparing(BufferedReader):
    """A file that is not read whole: an archive says itself how long its list of entries is, and where each begins."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes. Raise :class:`BadZipFile` for more than a list of entries may have."""
        most = LARGEST_LIST + 1
        data = super().read(most if size is None or size < 0 else min(size, most))
        if len(data) == most:
            raise BadZipFile("its list of entries is too long")
        return data

    def seek(self, target: int, whence: int = 0, /) -> int:
        """Go to a place, and return it. Raise :class:`BadZipFile` for one before the file's begin."""
        if whence == 0 and target < 0:
            raise BadZipFile("an entry begins before the archive does")
        return super().seek(target, whence)


@contextmanager
def _opened(archive: Path) -> Iterator[ZipFile]:
    """Yield the archive. Raise :class:`StudyError` if it is none, or if it turns out to be damaged in the block."""
    if not archive.is_file():
        raise StudyError(f"{archive}: not a bundle: no such file")
    try:
        with _Sparing(FileIO(archive)) as file, ZipFile(file) as zipped:
            yield zipped
    except BROKEN as error:
        raise StudyError(f"{archive}: not a bundle: not a zip archive, or a damaged one ({error})") from None


def _checked(zipped: ZipFile, archive: Path) -> tuple[list[ZipInfo], list[str]]:
    """Return the files to unpack, and the names of those that no bundle holds."""
    entries = zipped.infolist()
    if len(entries) > MOST_FILES:
        raise StudyError(f"{archive}: it has {len(entries)} entries; allowed: up to {MOST_FILES}")
    seen: dict[str, str] = {}
    for entry in entries:
        name, reason = entry.orig_filename, _reason_against(entry)
        letters = name.rstrip("/").casefold()
        if letters in seen:  # on many disks two names that differ in case alone are one file
            reason = f"{seen[letters]!r} is there already"
        if reason:
            raise StudyError(f"{archive}: {name!r} is not allowed: {reason}")
        seen[letters] = name
    _check_size(entries, archive)
    files = [entry for entry in entries if not entry.is_dir()]
    known = [entry for entry in files if kind_of(entry.filename)]
    if not any(entry.filename == METADATA for entry in known) or not any(
        entry.filename.endswith("/plan.json") for entry in known
    ):
        raise StudyError(f"{archive}: not a bundle: it holds no {METADATA}, or no <study>/plan.json")
    return known, [entry.filename for entry in files if not kind_of(entry.filename)]


def _reason_against(entry: ZipInfo) -> str | None:
    """Return why an entry may not be in a bundle; None if it may."""
    name, kind = entry.orig_filename, stat.S_IFMT(entry.external_attr >> 16)
    parts = name.removesuffix("/").split("/")
    if name.startswith("/") or "\\" in name or name[1:2] == ":":
        return "a name is a relative path with forward slashes"
    if {"", ".", ".."} & set(parts) or "\0" in name:
        return "a name leads from folder to folder, and out of none"
    if kind not in (0, stat.S_IFDIR if entry.is_dir() else stat.S_IFREG):
        return "it is a link or a device; plain files are allowed"
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or entry.flag_bits & ENCRYPTED:
        return "it is encrypted, or compressed by another method than deflate"
    if entry.file_size > LARGEST:
        return f"it has {entry.file_size} bytes; allowed: up to {LARGEST}"
    return None


def _check_size(entries: Sequence[ZipInfo], archive: Path) -> None:
    size = sum(entry.file_size for entry in entries)
    most = min(MOST_BYTES, MOST_TIMES * archive.stat().st_size)
    if size > most:
        raise StudyError(f"{archive}: unpacked it has {size} bytes; allowed: up to {most}")


def _extract(zipped: ZipFile, entry: ZipInfo, path: Path) -> None:
    """Write one file. The standard library reads no more of an entry than the size that was looked at."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipped.open(entry) as source, path.open("xb") as target:
        shutil.copyfileobj(source, target)
