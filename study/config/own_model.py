"""A user's own model as the host sees it: its files and their imports, in the folder where the study is started.

No torch is needed and nothing is imported: the imports are read from the text of the files.
"""

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from study.base.errors import StudyError
from study.base.imports import imported
from study.config.networks import is_own


def source(name: str, folder: Path) -> Path | None:
    """Return the module or package in ``folder`` that holds the model ``name``, or None if ``folder`` has none."""
    top = name.partition(":")[0].partition(".")[0]
    if not is_own(name) or top == "study":
        return None
    return next((path for path in _candidates(top, folder) if path.exists()), None)


def sources(name: str, folder: Path) -> list[Path]:
    """Return the modules and packages in ``folder`` that the model ``name`` needs: its own, and all that these import.

    An import that only the running code decides (``importlib``) is not seen.
    """
    own = source(name, folder)
    found: dict[Path, None] = {}
    waiting = [own] if own else []
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = None
            waiting += [beside for top in _imported(path) if (beside := _beside(top, folder))]
    return sorted(found)


def code_sha256(paths: Iterable[Path]) -> str:
    """Return the SHA-256 over the Python files of modules and packages, names and contents."""
    total = hashlib.sha256()
    for path in paths:
        for file in _files(path):
            total.update(file.relative_to(path.parent).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()


def _candidates(top: str, folder: Path) -> tuple[Path, ...]:
    """Return the paths of a module in Python's order of search: a folder without ``__init__.py`` comes last."""
    package, module = folder / top, folder / f"{top}.py"
    return (package, module) if (package / "__init__.py").is_file() else (module, package)


def _beside(top: str, folder: Path) -> Path | None:
    """Return the module or package in ``folder`` that an import finds.

    The result is None if the import finds Python's own or an installed one. A plain folder of the same name hides no
    installed package: many loggers leave their output in one.
    """
    if top == "study" or top in sys.stdlib_module_names:
        return None
    path = next((path for path in _candidates(top, folder) if path.exists()), None)
    if path and path.is_dir() and not (path / "__init__.py").is_file():
        spec = importlib.util.find_spec(top)
        return path if (spec is None or spec.origin is None) and _files(path) else None
    return path


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _imported(path: Path) -> list[str]:
    """Return the first names of all imports anywhere in the files; relative imports stay in the package."""
    tops: dict[str, None] = {}
    for file in _files(path):
        tops |= dict.fromkeys(name.partition(".")[0] for name in imported(file))
    return list(tops)


def _is_installed(top: str) -> bool:
    """Return whether an import of ``top`` finds it in every process: each has another ``__main__``."""
    try:
        return top != "__main__" and importlib.util.find_spec(top) is not None
    except ValueError:  # a module that was not imported from anywhere
        return False


def check(name: str, folder: Path, engine: str) -> None:
    """Raise :class:`StudyError` if the runs will not find the model: a container sees only ``folder``."""
    if not is_own(name) or source(name, folder):
        return
    top = name.partition(":")[0].partition(".")[0]
    if engine != "none" or not _is_installed(top):
        where = "here" if engine == "none" else "here, and a container sees no other folder"
        raise StudyError(
            f"model.name: {name!r} is not allowed: there is no {top}.py and no folder {top} {where}; allowed: "
            "package.module:factory, importable from the folder where the study is started"
        )
