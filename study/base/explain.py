"""What pydantic refuses, in this project's words: the key, the value and what is allowed."""

import re
from typing import Any

from pydantic import BaseModel, ValidationError

from study.base.strict_yaml import shown

MOST = 20
"""Errors that one line names."""


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Return the errors of a validation of ``model`` in one line: key, value, allowed values."""
    lines = []
    items = [(_path(item["loc"]), item) for item in error.errors()]
    above = {tuple(path[:depth]) for path, _ in items for depth in range(len(path))}
    for path, item in items:
        if tuple(path) in above:
            continue  # a union gives an error for each member: keep that of the member that fits best
        if item["type"] == "extra_forbidden":
            allowed = ", ".join(_fields_at(model, path[:-1]))
            lines.append(f"{'.'.join(path)}: unknown key (value {shown(item['input'])}); allowed: {allowed}")
        else:
            lines.append(_line(path, item))
    lines = list(dict.fromkeys(lines))
    more = [f"and {len(lines) - MOST} more"] if len(lines) > MOST else []
    return "; ".join([*lines[:MOST], *more])


def explain_first(error: ValidationError) -> str:
    """Return the first error in a damaged file in one line that begins with its key.

    A file of another ``schema_version`` has other keys, too: the version is named, and not these.
    """
    items = error.errors(include_url=False)
    item = next((item for item in items if item["loc"] == ("schema_version",)), items[0])
    path = _path(item["loc"])
    if item["type"] == "json_invalid":
        return f"it is not JSON ({item['ctx']['error']})"
    if path == ["schema_version"]:
        return f"schema_version: {shown(item['input'])} is not allowed: another version of this software wrote the file"
    if item["type"] == "extra_forbidden":
        return f"{'.'.join(path)}: unknown key"
    return _line(path, item)


def _line(path: list[str], item: Any) -> str:
    """Return one error: ``item`` is of :meth:`ValidationError.errors`, ``path`` the parts of its key."""
    key = ".".join(path)
    if item["type"] == "missing":
        return f"{key}: missing; it must be given"
    if item["type"] == "value_error":
        message = str(item["ctx"]["error"])
        return message if not path or message.startswith(path[0]) else f"{key}.{message}"
    return f"{key}: {shown(item['input'])} is not allowed: {item['msg'][0].lower()}{item['msg'][1:]}"


def _path(location: tuple[int | str, ...]) -> list[str]:
    """Return the parts of the key of an error, without the union member that pydantic appends ("threads.int")."""
    return [str(part) for part in location if not re.match(r"literal\[|list\[|int$|str$", str(part))]


def _fields_at(model: type[BaseModel], sections: list[str]) -> list[str]:
    for section in sections:
        annotation = model.model_fields[section].annotation if section in model.model_fields else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return list(model.model_fields)
