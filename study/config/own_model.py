"""A user's own model as the host sees it: its files and their imports, in the folder where the study is started.

``replications`` is a folder and no package: each folder in it is one, and those of the checkout are found from
everywhere. No torch is needed and nothing is imported: the imports are read from the text of the files.
"""

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from study.base.errors import StudyError
from study.base.files import ROOT
from study.base.imports import imported
from study.config.sections import is_own

REPLICATIONS = "replications"


def source(name: str, folder: Path) -> Path | None:
    """Return the module or package that holds the model ``name``, or None if there is none."""
    module = name.partition(":")[0]
    if not is_own(name) or module.partition(".")[0] == "study":
        return None
    return next((path for path in _candidates(module, folder) if path.exists()), None)


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
            waiting += [beside for module in _imported(path) if (beside := _beside(module, folder))]
    return sorted(found)


def importable(path: Path, folder: Path) -> str:
    """Return the path of a module or package of :func:`sources` from the folder that Python looks it up in."""
    replicated = path.parent in [one / REPLICATIONS for one in _homes(folder)]
    return f"{REPLICATIONS}/{path.name}" if replicated else path.name


def _homes(folder: Path) -> list[Path]:
    """Return the folders that may hold replications: that where the study is started, and the checkout."""
    return list(dict.fromkeys([folder.resolve(), ROOT]))


def code_sha256(paths: Iterable[Path]) -> str:
    """Return the SHA-256 over the Python files of modules and packages, names and contents."""
    total = hashlib.sha256()
    for path in paths:
        for file in _files(path):
            total.update(file.relative_to(path.parent).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return total.hexdigest()


def _candidates(module: str, folder: Path) -> tuple[Path, ...]:
    """Return the paths of a module's first part in Python's order: a folder without ``__init__.py`` comes last."""
    top, _, rest = module.partition(".")
    if top == REPLICATIONS and rest:
        return tuple(path for home in _homes(folder) for path in _candidates(rest, home / REPLICATIONS))
    package, file = folder / top, folder / f"{top}.py"
    return (package, file) if (package / "__init__.py").is_file() else (file, package)


def _beside(module: str, folder: Path) -> Path | None:
    """Return the module or package in ``folder`` that an import finds.

    The result is None if the import finds Python's own or an installed one. A plain folder of the same name hides no
    installed package: many loggers leave their output in one.
    """
    top = module.partition(".")[0]
    if module == REPLICATIONS or top == "study" or top in sys.stdlib_module_names:
        return None
    path = next((path for path in _candidates(module, folder) if path.exists()), None)
    if path and path.is_dir() and not (path / "__init__.py").is_file():
        spec = importlib.util.find_spec(top)
        return path if (spec is None or spec.origin is None) and _files(path) else None
    return path


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _imported(path: Path) -> list[str]:
    """Return the modules of all imports anywhere in the files; relative imports stay in the package."""
    return list(dict.fromkeys(name for file in _files(path) for name in imported(file)))


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
        why = f"there is no {top}.py and no folder {top} {where}"
        allowed = "package.module:factory, importable from the folder where the study is started"
        raise StudyError(key="model.name", value=name, why=why, allowed=allowed)
