"""The installed packages that code imports, and their versions, by what their installer wrote: nothing is imported."""

import platform
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

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
