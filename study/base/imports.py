"""The files and the installed packages that a module needs, by what stands in texts: nothing is imported."""

import ast
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
"""The fields of a node that hold statements, or what holds statements."""
LAST_IMPORT = re.compile(rb".*\bimport\b[ \t]*(\([^)]*\))?[^\n]*", re.DOTALL)
"""A text up to the end of the last statement in which the word can be a keyword."""


def imported(file: Path, in_functions: bool = True, package: str = "") -> list[str]:
    """Return the dotted names that a Python file imports; none if it is no valid Python up to its last import.

    ``from a import b`` gives ``a`` and ``a.b``, because ``b`` may be a module. Imports for type checking alone are left
    out; without the name of the file's ``package`` relative ones, too, and without ``in_functions`` those that only a
    called function executes.
    """
    return _imported(file.read_bytes(), in_functions, package)


def outside(files: Iterable[Path]) -> list[str]:
    """Return the top modules that the files import, without Python's own."""
    tops = {name.partition(".")[0] for file in files for name in imported(file)}
    return sorted(tops - sys.stdlib_module_names)


def texts(file: Path) -> list[str]:
    """Return the texts that stand in a Python file as such; none if it is no valid Python."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    files = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return list(dict.fromkeys(text for text in files if isinstance(text, str)))


@cache  # every step of the analysis needs many of the same files
def _imported(text: bytes, in_functions: bool, package: str) -> list[str]:
    """Return the names from the text up to its last import, or from all of it where the word stands in a text or a
    block that goes on. Each start of Snakemake asks for every module, and most imports stand at the top."""
    last = LAST_IMPORT.match(text)
    for part in (last[0], text) if last else ():
        try:
            return list(dict.fromkeys(_names([ast.parse(part)], in_functions, package)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # the import itself reports the error
            continue
    return []


def _names(nodes: Iterable[ast.AST], in_functions: bool, package: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if base := _base(node, package):
                yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.If) and _is_for_types(node.test):
            yield from _names(node.orelse, in_functions, package)
        elif in_functions or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for block in BLOCKS:  # expressions, most of a tree, hold no import
                yield from _names(getattr(node, block, ()), in_functions, package)


def _base(node: ast.ImportFrom, package: str) -> str:
    """Return the dotted name from which a statement imports; empty if a relative one leads nowhere."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    above = parts[: len(parts) - node.level + 1] if node.level <= len(parts) else []
    return ".".join([*above, *([node.module] if node.module else [])]) if above else ""


def _is_for_types(test: ast.expr) -> bool:
    """Return whether a condition is ``TYPE_CHECKING`` or ``typing.TYPE_CHECKING``."""
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))


def closure(module: str, folder: Path) -> list[Path]:
    """Return the files that ``module`` needs of its own distribution, whose top package lies in ``folder``.

    These are the modules that it imports, directly or not, also inside functions; the packages that hold them, whose
    functions are not called and therefore import nothing; and the data files of the modules' packages.
    """
    top = module.partition(".")[0]
    files: dict[Path, bool] = {}  # whether the functions of a file may be called
    seen, waiting = set[tuple[str, bool]](), [(module, True)]
    while waiting:
        name, called = one = waiting.pop()
        if one in seen or name.partition(".")[0] != top:
            continue
        seen.add(one)
        file = _file(name, folder)
        if file is None or files.get(file, False) or (file in files and not called):
            continue
        files[file] = called
        waiting += [(other, True) for other in imported(file, in_functions=called)]
        if "." in name:
            waiting.append((name.rpartition(".")[0], False))
    packages = {file.parent for file, called in files.items() if called}
    return sorted({*files, *(data for package in packages for data in _data(package))})


def _file(name: str, folder: Path) -> Path | None:
    """Return the file of a module or of a package, or None if ``name`` is neither: a function, say."""
    path = folder.joinpath(*name.split("."))
    return next((file for file in (path / "__init__.py", path.with_suffix(".py")) if file.is_file()), None)


def _data(package: Path) -> Iterator[Path]:
    """Yield the files in a package's folder that are no Python, those of folders that are no packages included."""
    for path in package.iterdir():
        if path.name.startswith((".", "__pycache__")):
            continue
        if path.is_dir() and not (path / "__init__.py").is_file():
            yield from _data(path)
        elif path.is_file() and path.suffix != ".py":
            yield path


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
        for needed in described.needs(option):
            waiting += [(canonicalize_name(needed.name), asked) for asked in ("", *needed.extras)]
    return dict(sorted(installed.items()))


def version(name: str) -> str | None:
    """Return the version of an installed distribution, or of the interpreter; None if it is not installed."""
    if name == PYTHON:
        return platform.python_version()
    described = _described(name)
    return described.version if described else None


class _Described:
    """What a distribution says of itself."""

    def __init__(self, distribution: metadata.Distribution) -> None:
        # Python's own way reads a whole description, which may be a book, for each question.
        head = (distribution.read_text("METADATA") or "").partition("\n\n")[0].splitlines()
        fields = [line.partition(": ")[::2] for line in head]
        self.version = dict(fields).get("Version") or distribution.version
        self._asked = [text for key, text in fields if key == "Requires-Dist"] if head else distribution.requires or []

    def needs(self, option: str) -> Iterator[Requirement]:
        """Yield what the distribution asks for here, with one of its extras, or without any if ``option`` is empty."""
        for text in self._asked:
            if ("extra" in text.partition(";")[2]) == bool(option):
                needed = _requirement(text)
                if needed and (needed.marker is None or needed.marker.evaluate({"extra": option})):
                    yield needed


def _described(name: str) -> _Described | None:
    return _described_on(name, tuple(sys.path))


@cache  # each study of a start asks
def _described_on(name: str, path: tuple[str, ...]) -> _Described | None:
    try:
        return _Described(metadata.distribution(name))
    except (metadata.PackageNotFoundError, ValueError):
        return None


@cache  # a package with many extras is asked for each of them
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
