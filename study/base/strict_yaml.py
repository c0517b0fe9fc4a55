"""YAML as people write it: PyYAML's safe loader, with ``1e-3`` as a number and a repeated key as an error."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from study.base.errors import StudyError


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be plain text", problem_mark=key_node.start_mark)
            if key_node.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key_node.value!r} is given twice", problem_mark=key_node.start_mark
                )
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
        return parse(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path.name}: cannot be read: {error.__class__.__name__}") from None


def parse_leaves(value: Any, source: str) -> Any:
    """Return ``value`` with every string in it parsed as YAML: Snakemake passes nested values as strings.

    A string that YAML reads as text stays as it was given, with its ``#``; so does one that is not valid YAML.
    """
    if isinstance(value, dict):
        return {key: parse_leaves(item, source) for key, item in value.items()}
    if isinstance(value, list):
        return [parse_leaves(item, source) for item in value]
    if not isinstance(value, str):
        return value
    try:
        parsed = parse(value, source)
    except StudyError:
        return value
    if isinstance(parsed, dict) and not value.lstrip().startswith("{"):
        return value  # a path such as "photos: 2026"
    return value if isinstance(parsed, str) and not value.startswith(("'", '"')) else parsed
