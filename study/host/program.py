"""A command as this machine finds it: its program, its files and its packages. Nothing is executed.

What the key of a run holds of a command is here: contents of files, and versions of packages.
"""

import glob
import os
import shutil
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any

from study.base.errors import StudyError
from study.base.files import content_of
from study.base.imports import distributions, imported, outside, versions
from study.config.command import PYTHON
from study.config.own_model import LARGEST_MIB, MOST_FILES, files_below, is_part
from study.config.settings import Settings

PLANNED = "0"
"""The seed with which a plan looks at the words of a command."""


def folder_of(settings: Settings, root: Path) -> Path:
    """Return the folder below ``root`` in which the command is started. Raise :class:`StudyError`
    for one that leads elsewhere."""
    assert settings.command
    given = settings.command.folder.format_map(settings.values(PLANNED))
    _check_below("command.folder", given)
    return root / given


def _check_below(key: str, given: str) -> None:
    if Path(given).is_absolute() or ".." in Path(given).parts:
        why = "it leads out of the folder where the study is started"
        raise StudyError(key=key, value=given, why=why, allowed="a path below that folder")


def files(settings: Settings, root: Path) -> list[Path]:
    """Return the files below ``root`` that a run gets a copy of, relative to it, in their order.

    They are those that the words of the command name, what a Python script among them imports from
    there, and ``command.files``. Raise :class:`StudyError` if one is missing, or for too many.
    """
    assert settings.command
    start, words = folder_of(settings, root), settings.words(PLANNED)
    found = set()
    for place, word in enumerate(words):
        for text in {word, word.partition("=")[2]} - {""}:
            path = Path(os.path.normpath(start / text))
            if not Path(text).is_absolute() and is_part(path, root) and path.is_file():
                found |= {path, *_imported_from(path, root)}
        is_script = place == 1 and words[0] in PYTHON and word.endswith(".py")
        if is_script and not (start / word).is_file():
            raise StudyError(key="command.line", value=word, why="no such file here")
    for pattern in settings.command.files:
        found |= _named(pattern, root)
    size = sum(path.stat().st_size for path in found)
    if len(found) > MOST_FILES or size > LARGEST_MIB << 20:
        why = f"{len(found)} files of {size >> 20} MiB: each run gets a copy"
        allowed = f"{MOST_FILES} files and {LARGEST_MIB} MiB; `command.data` for large ones"
        raise StudyError(key="command.files", why=why, allowed=allowed)
    return sorted(path.relative_to(root) for path in found)


def _named(pattern: str, root: Path) -> set[Path]:
    """Return the files that a path or a pattern of ``command.files`` names."""
    _check_below("command.files", pattern)
    named = [root / one for one in glob.glob(pattern, root_dir=root, recursive=True)]  # noqa: PTH207
    if not named:
        raise StudyError(key="command.files", value=pattern, why="no such file or folder here")
    found = set()
    for path in named[: MOST_FILES + 1]:
        found |= set(islice(files_below(path), MOST_FILES + 1)) if path.is_dir() else {path}
    return {Path(os.path.normpath(path)) for path in found}


def _imported_from(script: Path, root: Path) -> set[Path]:
    """Return the Python files below ``root`` that a script imports, and that these import.

    Python looks beside the script. Of a package all files of Python count.
    """
    found, waiting = set[Path](), [script] if script.suffix == ".py" else []
    while waiting:
        for name in imported(waiting.pop()):
            at = script.parent / name.partition(".")[0]
            paths = [*at.rglob("*.py")] if at.is_dir() else [at.with_suffix(".py")]
            new = {path for path in paths if path.is_file() and is_part(path, root)} - found
            found |= new
            waiting += new
    return found


def data(settings: Settings, root: Path) -> list[Path]:
    """Return the files and folders that a command reads where they lie, relative to ``root`` where
    they are below it. Raise :class:`StudyError` if one is missing."""
    assert settings.command
    for given in settings.command.data:
        if not (root / given).exists():
            raise StudyError(key="command.data", value=given, why="no such file or folder here")
    return [Path(given) for given in settings.command.data]


def program(settings: Settings, root: Path) -> Path | None:
    """Return the program of a command on the host; None for the Python of the start. Raise
    :class:`StudyError` if there is none."""
    name = settings.words(PLANNED)[0]
    if name in PYTHON:
        return None
    start = folder_of(settings, root)
    found = str(start / name) if os.sep in name else shutil.which(name)
    if not found or not os.access(found, os.X_OK) or Path(found).is_dir():
        why = "no such program in PATH, and no such file here"
        raise StudyError(key="command.line", value=name, why=why)
    return Path(found)


def identity(settings: Settings, root: Path, on_the_host: bool) -> dict[str, Any]:
    """Return what decides a command beside its settings: the contents of its files and of its
    program; names, sizes and times of its data, and of the files elsewhere that its words name."""
    own = {path.as_posix(): content_of(root / path) for path in files(settings, root)}
    elsewhere = [Path(word) for word in settings.words(PLANNED)[1:] if Path(word).is_absolute()]
    found = program(settings, root) if on_the_host else None
    return {
        "files": own,
        "elsewhere": [_traces(path) for path in elsewhere if path.is_file()],
        "data": [_traces(root / path) for path in data(settings, root)],
        "program": content_of(found.resolve()) if found else None,
        "packages": packages_beside(found) if found else {},
    }


def _traces(path: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of change of a file, or of each file below a folder."""
    every = sorted(files_below(path)) if path.is_dir() else [path]
    told = [(one, one.stat()) for one in every]
    start = path if path.is_dir() else path.parent
    return [(one.relative_to(start).as_posix(), now.st_size, now.st_mtime_ns) for one, now in told]


def packages_of(settings: Settings, root: Path) -> dict[str, str]:
    """Return the versions of the packages that the Python scripts of a command import from
    elsewhere, with all that these ask for; none for another program."""
    if settings.words(PLANNED)[0] not in PYTHON:
        return {}
    scripts = [root / path for path in files(settings, root) if path.suffix == ".py"]
    beside = {path.stem for path in scripts} | {path.parent.name for path in scripts}
    return versions(distributions(one for one in outside(scripts) if one not in beside))


def packages_beside(found: Path) -> dict[str, str]:
    """Return the versions of all packages of another Python than the start's, read from its
    folders; none if ``found`` is no Python."""
    if not found.name.startswith("python"):
        return {}
    folders = [str(path) for path in found.parent.parent.glob("lib*/python3*/*-packages")]
    return {str(one.name).lower(): one.version for one in metadata.distributions(path=folders)}
