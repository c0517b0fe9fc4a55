"""A user's own model as the host sees it: the files that decide it, in the folder where the study
is started.

``replications`` is a folder and no package: each folder in it is one, and those of the checkout are
found from everywhere. No torch is needed and nothing is imported.
"""

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from itertools import islice
from pathlib import Path

from study.base.errors import StudyError
from study.base.files import PACKAGE, ROOT, sha256_below
from study.base.imports import outside
from study.config.sections import is_own

REPLICATIONS = "replications"
MOST_FILES, LARGEST_MIB = 1000, 64
"""What the files of a model may be at most: each start reads them all."""
SKIPPED = {"__pycache__", "results", "venv", "node_modules", "site-packages", "dist-packages"}
"""Names of folders that hold no part of a model, as do all whose name begins with a dot."""


def home(name: str, folder: Path) -> Path:
    """Return the folder that holds the model's files: ``folder``, or where Python finds them if no
    one installed them.

    The version of an installed package tells its files.
    """
    top, _, rest = _module(name).partition(".")
    if top == REPLICATIONS and rest:
        return next(
            (one for one in (folder, ROOT) if _found(f"{top}.{rest.partition('.')[0]}", one)),
            folder,
        )
    if not is_own(name) or _found(top, folder) or not (spec := _installed(top)):
        return folder
    origins = list(spec.submodule_search_locations or filter(None, [spec.origin]))
    path = Path(origins[0]) if origins else folder / top
    return folder if SKIPPED & {*path.parts} else path.parent


def sources(name: str, folder: Path) -> list[Path]:
    """Return the files and folders that hold the model ``name``, of its :func:`home`; none if it is
    not there.

    These are the folder of its module, with the ``__init__.py`` of the packages around it. Of a
    module that lies in the home itself they are the Python files there, for the folder of a start
    holds data and results, too; but none with a name of Python's own modules, which are imported
    in its place.
    """
    at = home(name, folder)
    module = _found(_module(name), at) if is_own(name) else None
    if module is None:
        return []
    if module.parent == at and module.is_file():
        files = (path for path in at.glob("*.py") if path.is_file())
        return sorted(path for path in files if path.stem not in sys.stdlib_module_names)
    own = module.parent if module.is_file() else module
    above = [at / part / "__init__.py" for part in own.relative_to(at).parents if part.parts]
    return sorted([own, *(file for file in above if file.is_file())])


def files(name: str, folder: Path) -> list[Path]:
    """Return the files that decide the model ``name``: all that its :func:`sources` hold, Python's
    and data.

    Raise :class:`StudyError` if they are too many or too large.
    """
    paths: list[Path] = []
    for source in sources(name, folder):
        paths += [source] if source.is_file() else islice(files_below(source), MOST_FILES + 1)
    if len(paths) > MOST_FILES or sum(file.stat().st_size for file in paths) > LARGEST_MIB << 20:
        raise StudyError(
            key="model.name",
            value=name,
            why=f"each start reads its files, which are more than {MOST_FILES} with those beside "
            f"them, or {LARGEST_MIB} MiB",
            allowed="a model in a folder that holds little else",
        )
    return sorted(paths)


def outside_its_folder(name: str, folder: Path, imported: Iterable[str]) -> Path | None:
    """Return the first of the ``imported`` files that lies beside the model and not in its folder,
    or None.

    A change of such a file would be seen by nobody.
    """
    at = home(name, folder).resolve()
    own = {path.resolve() for path in files(name, folder)}
    for file in sorted(imported):
        path = Path(file).resolve()
        if path.is_relative_to(at) and path not in own and is_part(path, at):
            return path
    return None


def sha256(name: str, folder: Path) -> str | None:
    """Return the SHA-256 over the files of the model, names and contents; None if its home does not
    hold it."""
    paths = files(name, folder)
    try:
        return sha256_below(home(name, folder), paths) if paths else None
    except OSError as error:
        why = f"{error.filename} cannot be read ({error.strerror})"
        raise StudyError(key="model.name", value=name, why=why) from None


def packages(name: str, folder: Path) -> list[str]:
    """Return the top modules from elsewhere that the model needs: those that its files import, or
    its own."""
    paths, at = files(name, folder), home(name, folder)
    if not paths:
        return [_module(name).partition(".")[0]] if is_own(name) else []
    tops = outside(file for file in paths if file.suffix == ".py")
    return [top for top in tops if top not in ("study", REPLICATIONS) and not _found(top, at)]


def is_part(path: Path, folder: Path) -> bool:
    """Return whether a file of ``folder`` could be a part of a model: not the package's own,
    results, or installed."""
    if (
        path.is_relative_to(PACKAGE)
        or path.is_relative_to(folder / "study")
        or not path.is_relative_to(folder)
    ):
        return False
    return not any(
        part in SKIPPED or part.startswith(".") for part in path.relative_to(folder).parts
    )


def check(name: str, folder: Path, engine: str) -> None:
    """Raise :class:`StudyError` if the runs will not find the model: a container sees only
    ``folder``."""
    module, (top, *_) = _module(name), _module(name).split(".")
    is_there = _found(module, home(name, folder)) if top == REPLICATIONS else _found(top, folder)
    if not is_own(name) or is_there:
        return
    if engine != "none" or not _installed(top):
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
    """Return the module or package of ``folder`` that a name, or the longest beginning of it, leads
    to."""
    at, result = folder, None
    for part in dotted.split("."):
        path = next((path for path in _candidates(part, at) if path.exists()), None)
        if path is None or path == folder / "study":
            break
        at, result = path, path
    return None if result == folder / REPLICATIONS else result


def _candidates(part: str, folder: Path) -> tuple[Path, ...]:
    """Return the paths of a module in Python's order of search: a folder without ``__init__.py``
    comes last."""
    package, module = folder / part, folder / f"{part}.py"
    return (package, module) if (package / "__init__.py").is_file() else (module, package)


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, but hidden ones, results, and those of installed packages."""
    for at, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one not in SKIPPED and not one.startswith(".")]
        yield from (
            path for one in names if not one.startswith(".") and (path := Path(at, one)).is_file()
        )


def _installed(top: str) -> ModuleSpec | None:
    """Return where an import of ``top`` finds it in every process, or None: each has another
    ``__main__``."""
    try:
        return None if top == "__main__" else importlib.util.find_spec(top)
    except ValueError:  # a module that was not imported from anywhere
        return None
