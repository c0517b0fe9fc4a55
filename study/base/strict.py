"""The base of every model that is read from a file."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from study.base.errors import StudyError
from study.base.explain import explain_first
from study.base.files import read_text

LARGEST = 2**30
"""Bytes of the largest file that is read whole: the plan of a million runs."""


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


class Declared(Strict):
    """A model of what people write. Its numbers are finite: a plan is JSON, which has no others."""

    model_config = ConfigDict(allow_inf_nan=False)
