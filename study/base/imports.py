"""What a module imports, and the installed packages that it needs, by what stands in texts: nothing
is imported."""

import ast
import platform
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


def imported(file: Path) -> list[str]:
    """Return the dotted names that a Python file imports, also in functions; none if it is no valid
    Python.

    ``from a import b`` gives ``a`` and ``a.b``, because ``b`` may be a module. Relative imports,
    and those for type checking alone, are left out.
    """
    return _imported(file.read_bytes())


def outside(files: Iterable[Path]) -> list[str]:
    """Return the top modules that the files import, without Python's own."""
    tops = {name.partition(".")[0] for name in chain.from_iterable(map(imported, files))}
    return sorted(tops - sys.stdlib_module_names)


@cache  # each study of a start asks
def _imported(text: bytes) -> list[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # its import reports it
        return []
    return list(dict.fromkeys(_names(tree)))


def _names(node: ast.AST) -> Iterator[str]:
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.Import):
            yield from (alias.name for alias in one.names)
        elif isinstance(one, ast.ImportFrom):
            if one.module and not one.level:
                yield from (one.module, *(f"{one.module}.{alias.name}" for alias in one.names))
        elif (
            isinstance(one, ast.If) and ast.unparse(one.test).rpartition(".")[2] == "TYPE_CHECKING"
        ):
            yield from _names(ast.Module(one.orelse, []))
        elif not isinstance(one, ast.expr):  # expressions, most of a tree, hold no import
            yield from _names(one)


PYTHON = "python"
"""The interpreter's name among the packages."""
DISTRIBUTIONS = {"PIL": ["pillow"], "pynvml": ["nvidia-ml-py"]}
"""What a module comes with, where its distribution has another name, or needs one that it does not
ask for."""


def distributions(modules: Iterable[str]) -> list[str]:
    """Return the names of the distributions that hold the top modules of these dotted names."""
    names: dict[str, None] = {}
    for top in dict.fromkeys(name.partition(".")[0] for name in modules):
        known = DISTRIBUTIONS.get(top) or ([top] if _described(top) else _by_module().get(top, []))
        names |= dict.fromkeys(known)
    return list(names)


def versions(wanted: Iterable[str]) -> dict[str, str]:
    """Return the versions of the interpreter, of the ``wanted`` distributions and of all that these
    ask for.

    What is not installed has none.
    """
    installed = {PYTHON: platform.python_version()}
    seen, waiting = set[tuple[str, str]](), [(canonicalize_name(name), "") for name in wanted]
    while waiting:
        one = waiting.pop()
        name, option = one
        described = None if one in seen else _described(name)
        if described is None:
            continue
        seen.add(one)
        installed[name] = described.version
        for needed in filter(None, map(_requirement, described.requires or [])):
            if needed.marker is None or needed.marker.evaluate({"extra": option}):
                waiting += [
                    (canonicalize_name(needed.name), asked) for asked in ("", *needed.extras)
                ]
    return dict(sorted(installed.items()))


def version(name: str) -> str | None:
    """Return the version of an installed distribution, or of the interpreter; None if it is not
    installed."""
    if name == PYTHON:
        return platform.python_version()
    described = _described(name)
    return described.version if described else None


def _described(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None


@cache  # each study of a start asks
def _requirement(text: str) -> Requirement | None:
    """Return what a line asks for; None if it is in no form that an installer would still read."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


@cache
def _by_module() -> dict[str, list[str]]:
    """Return the distributions of each top module. This reads all that is installed, and takes a
    moment."""
    return {
        module: sorted(set(names)) for module, names in metadata.packages_distributions().items()
    }
