"""A user's own model as the host sees it: the files of its package beside the study's start. No torch, no import."""

import hashlib
import importlib.util
from pathlib import Path

from study.errors import StudyError
from study.networks import is_own


def source(name: str, folder: Path) -> Path | None:
    """The module or package in ``folder`` that holds the model ``name``; None where it lies elsewhere, or is none."""
    top = name.partition(":")[0].partition(".")[0]
    if not is_own(name) or top == "study":
        return None
    return next((path for path in (folder / top, folder / f"{top}.py") if path.exists()), None)


def code_sha256(path: Path) -> str:
    """SHA-256 over the Python files of a module or package, names and contents."""
    total = hashlib.sha256()
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        total.update(file.relative_to(path.parent).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()


def check(name: str, folder: Path, engine: str) -> None:
    """Raise :class:`StudyError` where the runs will not find the model: a container holds nothing but ``folder``'s."""
    if not is_own(name) or source(name, folder):
        return
    top = name.partition(":")[0].partition(".")[0]
    if engine != "none" or importlib.util.find_spec(top) is None:
        where = "here" if engine == "none" else "here, and a container sees no other folder"
        raise StudyError(
            f"model.name: {name!r} is not allowed: there is no {top}.py and no folder {top} {where}; allowed: "
            "package.module:factory, importable from the folder where the study is started"
        )
