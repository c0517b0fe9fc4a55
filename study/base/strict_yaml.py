"""YAML as people write it: PyYAML's safe loader, with ``1e-3`` as a number and a repeated key as an
error.

A date is text. Aliases, deep nesting and numbers beyond 64 bits are errors: no key needs them, and
they take time and memory without a limit.
"""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from study.base.errors import SHOWN, StudyError, is_too_large, shown
from study.base.files import read_text

DEEPEST = 20
"""Levels of lists and mappings within each other."""
LARGEST_FILE = 2**20
"""The most bytes of a file that people write."""
UNFIT = re.compile("[\0\ud800-\udfff]")
"""Characters that no file's name has, and half characters, which no file can hold."""

OTHER_BASES = r"[-+]?(?:0[0-9_]|.*:)"
NUMBERS = (":int", ":float")


class _Refused(yaml.MarkedYAMLError):
    """What is wrong with a node, or an event, of a file: the place is told where it is caught."""

    def __init__(self, problem: str, at: Any) -> None:
        super().__init__(problem=problem, problem_mark=at.start_mark)


class _Loader(yaml.SafeLoader):
    depth = 0
    # A date is text, and so is what YAML 1.1 counts in base 8 (`010`) or 60 (`1:30`).
    yaml_implicit_resolvers = {
        first: [
            (
                tag,
                re.compile(f"(?!{OTHER_BASES})(?:{regexp.pattern})", re.VERBOSE)
                if tag.endswith(NUMBERS)
                else regexp,
            )
            for tag, regexp in resolvers
            if not tag.endswith(":timestamp")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            raise _Refused("an alias is not allowed: write the value again", event)
        if self.depth > DEEPEST:
            raise _Refused(f"more than {DEEPEST} levels within each other", event)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        # digits of base 60 take hours
        if node.tag.endswith(NUMBERS) and len(node.value) > SHOWN:
            raise _Refused("a number of more than 100 characters", node)
        try:
            value = super().construct_object(node, deep)
        # how PyYAML refuses `0b_` or `!!bool x`
        except (ArithmeticError, AttributeError, LookupError, ValueError):
            problem = (
                f"{shown(node.value)} is not a value of the type {node.tag.rpartition(':')[2]}"
            )
            raise _Refused(problem, node) from None
        if is_too_large(value):
            raise _Refused("a whole number beyond 64 bits", node)
        if isinstance(value, (bytes, set)) or (isinstance(value, str) and UNFIT.search(value)):
            raise _Refused(f"{shown(value)} is not text", node)
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        # `!!set x` is none
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key_node, yaml.ScalarNode):
                raise _Refused("a key must be plain text", key_node)
            if key_node.value in seen:
                raise _Refused(f"key {key_node.value!r} is given twice", key_node)
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


# YAML 1.1 wants a dot in a float: without this, `learning_rate: 1e-3` is a string.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def parse(text: str, source: str) -> Any:
    """Return the value that ``text`` holds. ``source`` names it in the error."""
    if len(text) > LARGEST_FILE:
        raise StudyError(
            f"{source}: {len(text)} characters are more than the {LARGEST_FILE} that are allowed"
        )
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise StudyError(f"{source}{where}: not valid YAML: {what}") from None


def read(path: Path) -> Any:
    """Return the value of the YAML file ``path``."""
    try:
        text = read_text(path, LARGEST_FILE)
    except OSError as error:
        raise StudyError(source=path.name, why=f"cannot be read: {error.strerror}") from None
    except StudyError as error:
        raise StudyError(source=path.name, why=f"cannot be read: {error}") from None
    return parse(text, path.name)


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the keys and values of the YAML file ``path``."""
    values = read(path)
    if not isinstance(values, dict):
        raise StudyError(source=path.name, why="the file must hold keys and values")
    return values


def parse_leaves(value: Any, source: str) -> Any:
    """Return ``value`` with every string in it parsed as YAML: Snakemake passes nested values as
    strings.

    A string that YAML reads as text stays as it was given, with its ``#``; so does one that is not
    valid YAML.
    """
    if isinstance(value, dict):
        return {key: parse_leaves(item, source) for key, item in value.items()}
    if isinstance(value, list):
        return [parse_leaves(item, source) for item in value]
    if is_too_large(value):
        raise StudyError(key=source, value=value)
    if not isinstance(value, str):
        return value
    if UNFIT.search(value):
        raise StudyError(key=source, value=value, why="it is not text")
    try:
        parsed = parse(value, source)
    except StudyError:
        return value
    if isinstance(parsed, dict) and not value.lstrip().startswith("{"):
        return value  # a path such as "photos: 2026"
    return value if isinstance(parsed, str) and not value.startswith(("'", '"')) else parsed
