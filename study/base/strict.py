"""The base of every model that is read from a file."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from study.base.errors import StudyError
from study.base.explain import explain_first
from study.base.files import read_text

LARGEST = 2**30
"""Bytes of the largest file that is read whole: the plan of a million runs."""


SCHEMA_VERSION: Literal[2] = 2
"""Of every file of results. It is one of the first keys of the file."""
HEAD = 256
"""Bytes at the start of a file in which its version is."""


class OlderVersion(StudyError):
    """A file of results that an older version of this software wrote."""


class Strict(BaseModel):
    """A model that refuses unknown keys, converts no type silently, and cannot be changed after validation."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def read(cls, path: Path, hint: str) -> Self:
        """Return the value in a JSON file. Raise :class:`StudyError` with ``hint`` if there is none in it."""
        name = Path(*path.parts[-2:])
        try:
            return cls.of_file(path)
        except OSError as error:
            raise StudyError(f"{name}: cannot be read ({error.strerror}); {hint}") from None
        except OlderVersion as error:
            folder = path.parent.parent if path.parent.name == "records" else path.parent
            why = f"an older version of this software wrote it; move {folder} away, or start in another folder"
            raise OlderVersion(source=str(name), key=error.key, value=error.value, why=why) from None
        except StudyError as error:
            text = f"{name}: not a valid {cls.__name__.lower()}: {error}; {hint}"
            raise StudyError(text, source=str(name), key=error.key, value=error.value, why=error.why) from None

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Return the value in a JSON file. Raise :class:`StudyError` with the first key that is not valid."""
        return cls.of_text(read_text(path, LARGEST))

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the value in JSON. Raise :class:`StudyError` with the first key that is not valid."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise explain_first(error) from None


class Versioned(Strict):
    """A file of results, whose keys change with the version of this software. One of an older version is not read."""

    schema_version: Literal[2] = SCHEMA_VERSION

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the value in JSON. Raise :class:`StudyError` with the first key that is not valid."""
        try:
            return super().of_text(text)
        except StudyError:
            version = cls._version(text)
            if version is not None and version < SCHEMA_VERSION:
                raise OlderVersion(key="schema_version", value=version, why="an older version wrote the file") from None
            raise

    @classmethod
    def refuse_older(cls, path: Path) -> None:
        """Raise :class:`OlderVersion` if the file is of an older version, and nothing if it is none or damaged."""
        try:
            with path.open("rb") as file:
                known = f'"schema_version": {SCHEMA_VERSION}'.encode() in file.read(HEAD)
            if not known:  # else a plan of a million runs need not be read whole
                cls.read(path, "")
        except OlderVersion:
            raise
        except (OSError, StudyError):
            return

    @classmethod
    def _version(cls, text: str) -> int | None:
        """Return the version of a file. One that has every key but that of the version is of the first."""
        with suppress(ValueError, RecursionError):
            content: Any = json.loads(text)
            required = {name for name, field in cls.model_fields.items() if field.is_required()}
            if isinstance(content, dict):
                version = content.get("schema_version", 1 if required <= content.keys() else None)
                return version if type(version) is int else None
        return None


class Declared(Strict):
    """A model of what people write. Its numbers are finite: a plan is JSON, which has no others."""

    model_config = ConfigDict(allow_inf_nan=False)
