"""A user's own model as the host sees it: the files that decide it, in the folder where the study is started.

``replications`` is a folder and no package: each folder in it is one, and those of the checkout are found from
everywhere. No torch is needed and nothing is imported: imports, and names of files, are read from the text of the
files.
"""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from study.base.errors import StudyError
from study.base.files import PACKAGE, ROOT
from study.base.imports import imported, outside, texts
from study.config.sections import is_own

REPLICATIONS = "replications"
MOST_FILES, LARGEST_MIB = 1000, 64
"""What the files of a model may be at most: each start reads them all."""
SKIPPED = {"__pycache__", "results", "venv", "node_modules", "site-packages", "dist-packages"}
"""Names of folders that hold no part of a model, as do all whose name begins with a dot."""
LONGEST_NAME = 255


def home(name: str, folder: Path) -> Path:
    """Return the folder that holds the model's files: ``folder``, or where Python finds them if no one installed them.

    The version of an installed package tells its files.
    """
    top, _, rest = _module(name).partition(".")
    if top == REPLICATIONS and rest:
        return next((one for one in (folder, ROOT) if _found(f"{top}.{rest.partition('.')[0]}", one)), folder)
    if not is_own(name) or _found(top, folder) or not _is_installed(top):
        return folder
    spec = importlib.util.find_spec(top)
    origins = list((spec and spec.submodule_search_locations) or ([spec.origin] if spec and spec.origin else []))
    path = Path(origins[0]) if origins else folder / top
    return folder if SKIPPED & {*path.parts} else path.parent


def sources(name: str, folder: Path) -> list[Path]:
    """Return the files and folders that the model ``name`` needs, of its :func:`home`; none if it is not there."""
    units = _units(name, home(name, folder))
    return sorted(unit for unit in units if not set(unit.parents) & units.keys())


def files(name: str, folder: Path) -> list[Path]:
    """Return the files that decide the model ``name``, of its :func:`home`: Python's, and data with names in these.

    A module that lies in the home itself counts alone, and one in a package with all that lies beside it. So do the
    modules of the home that these import. A file of data counts whose path, from the home or from beside a module,
    stands in a text of the module, and a folder of data beside a module of a package. An import that only the running
    code decides is not seen, and neither is a path that it puts together. Raise :class:`StudyError` if the files are
    too many or too large.
    """
    paths = sorted({file for files in _units(name, home(name, folder)).values() for file in files})
    if len(paths) > MOST_FILES or sum(file.stat().st_size for file in paths) > LARGEST_MIB << 20:
        raise _too_much(name)
    return paths


def sha256(name: str, folder: Path) -> str | None:
    """Return the SHA-256 over the files of the model, names and contents; None if its home does not hold it."""
    total, at, paths = hashlib.sha256(), home(name, folder), files(name, folder)
    for file in paths:
        try:
            content = file.read_bytes()
        except OSError as error:
            raise StudyError(key="model.name", value=name, why=f"{file} cannot be read ({error.strerror})") from None
        total.update(file.relative_to(at).as_posix().encode() + b"\0" + content + b"\0")
    return total.hexdigest() if paths else None


def packages(name: str, folder: Path) -> list[str]:
    """Return the top modules from elsewhere that the model needs: those that its files import, or its own."""
    paths, at = files(name, folder), home(name, folder)
    if not paths:
        return [_module(name).partition(".")[0]] if is_own(name) else []
    tops = outside(file for file in paths if file.suffix == ".py")
    return [top for top in tops if top not in ("study", REPLICATIONS) and not _found(top, at)]


def is_part(path: Path, folder: Path) -> bool:
    """Return whether a file of ``folder`` could be a part of a model: not the package's own, results, or installed."""
    if path.is_relative_to(PACKAGE) or path.is_relative_to(folder / "study") or not path.is_relative_to(folder):
        return False
    return not any(part in SKIPPED or part.startswith(".") for part in path.relative_to(folder).parts)


def check(name: str, folder: Path, engine: str) -> None:
    """Raise :class:`StudyError` if the runs will not find the model: a container sees only ``folder``."""
    module, (top, *_) = _module(name), _module(name).split(".")
    is_there = _found(module, home(name, folder)) if top == REPLICATIONS else _found(top, folder)
    if not is_own(name) or is_there:
        return
    if engine != "none" or not _is_installed(top):
        where = "here" if engine == "none" else "here, and a container sees no other folder"
        raise StudyError(
            key="model.name",
            value=name,
            why=f"there is no {top}.py and no folder {top} {where}",
            allowed="package.module:factory, importable from the folder where the study is started",
        )


def _module(name: str) -> str:
    return name.partition(":")[0]


def _found(dotted: str, folder: Path) -> Path | None:
    """Return the module or package of ``folder`` that a name, or the longest beginning of it, leads to."""
    at, result = folder, None
    for part in dotted.split("."):
        path = next((path for path in _candidates(part, at) if path.exists()), None)
        if path is None or path == folder / "study":
            break
        at, result = path, path
    return None if result == folder / REPLICATIONS else result


def _candidates(part: str, folder: Path) -> tuple[Path, ...]:
    """Return the paths of a module in Python's order of search: a folder without ``__init__.py`` comes last."""
    package, module = folder / part, folder / f"{part}.py"
    return (package, module) if (package / "__init__.py").is_file() else (module, package)


def _units(name: str, folder: Path) -> dict[Path, list[Path]]:
    """Return the files and folders that the model needs, each with its files that count."""
    units: dict[Path, list[Path]] = {}
    waiting = [_unit(module, folder)] if is_own(name) and (module := _found(_module(name), folder)) else []
    while waiting:
        unit = waiting.pop()
        if unit in units:
            continue
        units[unit] = [file for file in _below(unit, name) if unit.is_file() or file.suffix == ".py"]
        above = unit.relative_to(folder).parents
        waiting += [file for part in above if part.parts and (file := folder / part / "__init__.py").is_file()]
        for file in units[unit]:
            if file.suffix == ".py":
                waiting += _imported(file, folder)
                waiting += _named(file, folder, name)
    return units


def _unit(module: Path, folder: Path) -> Path:
    """Return what counts where a module is needed: itself at the top of ``folder``, or else its package."""
    return module.parent if module.is_file() and module.parent != folder else module


def _imported(file: Path, folder: Path) -> Iterator[Path]:
    """Yield what a Python file imports from ``folder``.

    That is nothing where the import finds Python's own or an installed module. A plain folder of the same name hides no
    installed package: many loggers leave their output in one. A plain folder by itself holds nothing to import.
    """
    package = ".".join(file.parent.relative_to(folder).parts)
    for dotted in imported(file, package=package):
        module, top = _found(dotted, folder), dotted.partition(".")[0]
        if module and top not in sys.stdlib_module_names and (module.is_file() or (module / "__init__.py").is_file()):
            is_plain = (folder / top).is_dir() and not (folder / top / "__init__.py").is_file()
            spec = importlib.util.find_spec(top) if is_plain else None
            if spec is None or spec.origin is None:
                yield _unit(module, folder)


def _named(file: Path, folder: Path, name: str) -> Iterator[Path]:
    """Yield the files of data, and those in folders of data, whose names stand in the texts of a Python file."""
    for text in texts(file):
        if text.isprintable() and 0 < len(text.encode()) <= LONGEST_NAME and not {".", ".."} & {*text.split("/")}:
            for path in {file.parent / text, folder / text}:
                if is_part(path, folder) and path.is_file():
                    yield path
            if file.parent != folder and is_part(beside := file.parent / text, folder) and beside.is_dir():
                yield from _below(beside, name)


def _below(unit: Path, name: str) -> list[Path]:
    """Return a file, or all files of a folder in their order. Raise :class:`StudyError` if they are too many."""
    if unit.is_file():
        return [unit]
    paths: list[Path] = []
    for at, folders, names in os.walk(unit):
        folders[:] = [one for one in folders if one not in SKIPPED and not one.startswith(".")]
        paths += (path for one in names if not one.startswith(".") and (path := Path(at, one)).is_file())
        if len(paths) > MOST_FILES:
            raise _too_much(name)
    return sorted(paths)


def _too_much(name: str) -> StudyError:
    why = f"each start reads its files, which are more than {MOST_FILES} with those beside them, or {LARGEST_MIB} MiB"
    return StudyError(key="model.name", value=name, why=why, allowed="a model in a folder that holds little else")


def _is_installed(top: str) -> bool:
    """Return whether an import of ``top`` finds it in every process: each has another ``__main__``."""
    try:
        return top != "__main__" and importlib.util.find_spec(top) is not None
    except ValueError:  # a module that was not imported from anywhere
        return False
