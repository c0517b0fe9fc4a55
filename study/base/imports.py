"""What a module imports, and the installed packages that it needs, by what stands in texts: nothing is imported."""

import ast
import platform
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


def imported(file: Path, package: str = "") -> list[str]:
    """Return the dotted names that a Python file imports, also in functions; none if it is no valid Python.

    ``from a import b`` gives ``a`` and ``a.b``, because ``b`` may be a module. Imports for type checking alone are left
    out; without the name of the file's ``package`` relative ones, too.
    """
    return _imported(file.read_bytes(), package)


def outside(files: Iterable[Path]) -> list[str]:
    """Return the top modules that the files import, without Python's own."""
    tops = {name.partition(".")[0] for file in files for name in imported(file)}
    return sorted(tops - sys.stdlib_module_names)


def texts(file: Path) -> list[str]:
    """Return the texts that stand in a Python file as such; none if it is no valid Python."""
    files = (node.value for node in ast.walk(_parsed(file.read_bytes())) if isinstance(node, ast.Constant))
    return list(dict.fromkeys(text for text in files if isinstance(text, str)))


def _parsed(text: bytes) -> ast.AST:
    """Return the tree of a Python file; an empty one if it is no valid Python, which its import reports."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


@cache  # each study of a start asks
def _imported(text: bytes, package: str) -> list[str]:
    return list(dict.fromkeys(_names(_parsed(text), package)))


def _names(node: ast.AST, package: str) -> Iterator[str]:
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.Import):
            yield from (alias.name for alias in one.names)
        elif isinstance(one, ast.ImportFrom):
            if base := _base(one, package):
                yield from (base, *(f"{base}.{alias.name}" for alias in one.names))
        elif isinstance(one, ast.If) and ast.unparse(one.test).rpartition(".")[2] == "TYPE_CHECKING":
            yield from _names(ast.Module(one.orelse, []), package)
        elif not isinstance(one, ast.expr):  # expressions, most of a tree, hold no import
            yield from _names(one, package)


def _base(node: ast.ImportFrom, package: str) -> str:
    """Return the dotted name from which a statement imports; empty if a relative one leads nowhere."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    above = parts[: len(parts) - node.level + 1] if node.level <= len(parts) else []
    return ".".join([*above, *([node.module] if node.module else [])]) if above else ""


PYTHON = "python"
"""The interpreter's name among the packages."""
DISTRIBUTIONS = {"PIL": ["pillow"], "onnx": ["onnx", "onnxscript"], "pynvml": ["nvidia-ml-py"]}
"""What a module comes with, where its distribution has another name, or needs one that it does not ask for."""


def distributions(modules: Iterable[str]) -> list[str]:
    """Return the names of the distributions that hold the top modules of these dotted names."""
    names: dict[str, None] = {}
    for top in dict.fromkeys(name.partition(".")[0] for name in modules):
        known = DISTRIBUTIONS.get(top) or ([top] if _described(top) else _by_module().get(top, []))
        names |= dict.fromkeys(known)
    return list(names)


def versions(wanted: Iterable[str]) -> dict[str, str]:
    """Return the versions of the interpreter, of the ``wanted`` distributions and of all that these ask for.

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
                waiting += [(canonicalize_name(needed.name), asked) for asked in ("", *needed.extras)]
    return dict(sorted(installed.items()))


def version(name: str) -> str | None:
    """Return the version of an installed distribution, or of the interpreter; None if it is not installed."""
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
    """Return the distributions of each top module. This reads all that is installed, and takes a moment."""
    return {module: sorted(set(names)) for module, names in metadata.packages_distributions().items()}
