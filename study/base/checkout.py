"""The checkout that holds this package, if it lies in one: an installed wheel has no studies, Dockerfile and locks."""

import subprocess
from pathlib import Path

from study.base.errors import StudyError
from study.base.files import ROOT


def root() -> Path:
    """Return the checkout's folder. Raise :class:`StudyError` without one: only a checkout can plan and measure."""
    if not (ROOT / "Snakefile").is_file():
        raise StudyError(
            "this needs a checkout of the project (its config/, docker/ and locks), and the package is installed "
            "without one: run `python -m study` in the folder of a checkout, or `pip install --editable .` there"
        )
    return ROOT


def replications() -> dict[str, Path]:
    """Return the folder of each replication by its name: those where a start is made, then those of the checkout."""
    folders: dict[str, Path] = {}
    for base in (Path.cwd(), ROOT):
        for folder in sorted((base / "replications").glob("*/")):
            if not folder.name.startswith(("_", ".")):
                folders.setdefault(folder.name, folder)
    return folders


def commit() -> str | None:
    """Return the checkout's commit. None without git or a commit."""
    return _git("rev-parse", "HEAD")


def is_changed() -> bool | None:
    """Return whether a file that git tracks differs from the commit. None without git or a commit."""
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return None if changed is None or commit() is None else bool(changed)


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
