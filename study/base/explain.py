"""What pydantic refuses, in this project's words: the key, the value and what is allowed."""

import re
from typing import Any

from pydantic import BaseModel, ValidationError

from study.base.errors import StudyError


def explain(error: ValidationError, model: type[BaseModel], source: str) -> StudyError:
    """Return the errors of a validation of ``model`` as one whose line starts with ``source``."""
    found = []
    items = [(_path(item["loc"]), item) for item in error.errors()]
    above = {tuple(path[:depth]) for path, _ in items for depth in range(len(path))}
    for path, item in items:
        if tuple(path) in above:
            continue  # a union gives an error for each member: keep that of the member that fits best
        if item["type"] == "extra_forbidden":
            allowed = _fields_at(model, path[:-1])
            found.append(StudyError(key=".".join(path), value=item["input"], why="unknown key", allowed=allowed))
        else:
            found.append(_one(path, item))
    return StudyError.of_several(found, source)


def explain_first(error: ValidationError) -> StudyError:
    """Return the first error in a damaged file.

    A file of another ``schema_version`` has other keys, too: the version is named, and not these.
    """
    items = error.errors(include_url=False)
    item = next((item for item in items if item["loc"] == ("schema_version",)), items[0])
    path = _path(item["loc"])
    if item["type"] == "json_invalid":
        return StudyError(f"it is not JSON ({item['ctx']['error']})")
    if path == ["schema_version"]:
        why = "another version of this software wrote the file"
        return StudyError(key="schema_version", value=item["input"], why=why)
    if item["type"] == "extra_forbidden":
        return StudyError(key=".".join(path), why="unknown key")
    return _one(path, item)


def _one(path: list[str], item: Any) -> StudyError:
    """Return one error: ``item`` is of :meth:`ValidationError.errors`, ``path`` the parts of its key."""
    key = ".".join(path)
    if item["type"] == "missing":
        return StudyError(key=key, why="missing; it must be given")
    if item["type"] == "value_error":
        own = item["ctx"]["error"]
        if not isinstance(own, StudyError):
            own, text = StudyError(str(own)), f"{key}.{own}"
        else:
            text = ""
            key = f"{key}.{own.key}".strip(".")
        if not path or str(own).startswith(path[0]):
            return own
        return StudyError(text, key=key, value=own.value, context=own.context, why=own.why, allowed=own.allowed)
    return StudyError(key=key, value=item["input"], why=f"{item['msg'][0].lower()}{item['msg'][1:]}")


def _path(location: tuple[int | str, ...]) -> list[str]:
    """Return the parts of the key of an error, without the union member that pydantic appends ("threads.int")."""
    return [str(part) for part in location if not re.match(r"literal\[|list\[|(int|str|bool)$", str(part))]


def _fields_at(model: type[BaseModel], sections: list[str]) -> list[str]:
    for section in sections:
        annotation = model.model_fields[section].annotation if section in model.model_fields else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return list(model.model_fields)
