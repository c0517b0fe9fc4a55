"""Models whose keys are all declared, and their errors in this project's words: the key, the value,
what is allowed."""

import json
import re
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from study.base.errors import StudyError
from study.base.files import read_text, write_if_changed


def explain(error: ValidationError, model: type[BaseModel], source: str) -> StudyError:
    """Return the errors of a validation of ``model`` as one whose line starts with ``source``."""
    errors = []
    items = [(_path(item["loc"]), item) for item in error.errors()]
    above = set()
    for path, _ in items:
        above |= {tuple(path[:depth]) for depth in range(len(path))}
    for path, item in items:
        if tuple(path) in above:
            # a union gives an error for each member: keep that of the member that fits best
            continue
        if item["type"] == "extra_forbidden":
            errors.append(
                StudyError(
                    key=".".join(path),
                    value=item["input"],
                    why="unknown key",
                    allowed=_fields_at(model, path[:-1]),
                )
            )
        else:
            errors.append(_one(path, item))
    return StudyError.of_several(errors, source)


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
        return StudyError(
            key="schema_version",
            value=item["input"],
            why="another version of this software wrote the file",
        )
    if item["type"] == "extra_forbidden":
        return StudyError(key=".".join(path), why="unknown key")
    return _one(path, item)


def _one(path: list[str], item: Any) -> StudyError:
    """Return one error: ``item`` is of :meth:`ValidationError.errors`, ``path`` the parts of its
    key."""
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
        return StudyError(
            text, key=key, value=own.value, context=own.context, why=own.why, allowed=own.allowed
        )
    return StudyError(
        key=key, value=item["input"], why=f"{item['msg'][0].lower()}{item['msg'][1:]}"
    )


def _path(location: tuple[int | str, ...]) -> list[str]:
    """Return the parts of the key of an error, without the union member that pydantic appends
    ("threads.int")."""
    return [
        str(part)
        for part in location
        if not re.match(r"(literal|list)\[|(int|float|str|bool)$", str(part))
    ]


def _fields_at(model: type[BaseModel], sections: list[str]) -> list[str]:
    for section in sections:
        annotation = (
            model.model_fields[section].annotation if section in model.model_fields else None
        )
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return list(model.model_fields)


def one_line(description: str) -> str:
    """Return the description of a key, which may take several lines of the code, in one."""
    return " ".join(description.split())


LARGEST = 2**30
"""Bytes of the largest file that is read whole: the plan of a million runs."""


SCHEMA_VERSION: Literal[2] = 2
"""Of plans, records and analyses. It is one of the first keys of the file."""


class Strict(BaseModel):
    """A model that refuses unknown keys, converts no type silently, and cannot be changed after
    validation."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    remedy: ClassVar[str] = "each start of the pipeline writes it"
    """What makes the file, or makes it anew."""

    @classmethod
    def read(cls, path: Path, remedy: str = "") -> Self:
        """Return the value in a JSON file. Raise :class:`StudyError` with the remedy if there is
        none in it."""
        name, hint = Path(*path.parts[-2:]), remedy or cls.remedy
        try:
            return cls.of_file(path)
        except OSError as error:
            raise StudyError(f"{name}: cannot be read ({error.strerror}); {hint}") from None
        except StudyError as error:
            text = f"{name}: not a valid {cls.__name__.lower()}: {error}; {hint}"
            raise StudyError(
                text, source=str(name), key=error.key, value=error.value, why=error.why
            ) from None

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Return the value in a JSON file. Raise :class:`StudyError` with the first key that is not
        valid."""
        return cls.of_text(read_text(path, LARGEST))

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the value in JSON. Raise :class:`StudyError` with the first key that is not
        valid."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise explain_first(error) from None

    def write(self, path: Path) -> None:
        """Write the value to a JSON file, whose time stays if it holds it already."""
        write_if_changed(path, self.model_dump_json(indent=1))


class Versioned(Strict):
    """A file of results, whose keys change with the version of this software."""

    schema_version: Literal[2] = SCHEMA_VERSION


class Declared(Strict):
    """A model of what people write, described by key. Its numbers are finite: a plan is JSON, which
    has no others."""

    model_config = ConfigDict(allow_inf_nan=False, use_attribute_docstrings=True)

    @classmethod
    def of_values(cls, values: dict[str, Any], source: str) -> Self:
        """Return the checked values. Raise :class:`StudyError` with one line that starts with
        ``source``."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise explain(error, cls, source) from None


TO_A_COMMAND = "inference is a command now, replications/inference/answer.py: measure it again"
GONE = (
    # inference is a command now
    "study.task",
    "study.inference",
    "settings.task",
    "settings.inference",
    "measurement.inference",
    # each process takes one contiguous part of a batch
    "loader.sharding",
    # more `replicates` and another start do the same
    "replicates.until",
)
"""The keys of a plan or a record that went and that an older result holds, such as
`measurement.flops`, with why they went. Such a key is dropped where a file is read: the file
stays, and a record's checksum is that of all that it holds."""
LEFT_OUT = {
    "study.task": ("inference", TO_A_COMMAND),
    "settings.task": ("inference", TO_A_COMMAND),
    "loader.kind": (
        "alone",
        "the loader alone is a command now, replications/field/decode_speed.py or loader_speed.py: "
        "measure it again",
    ),
}
"""Values of keys that nothing measures any more, and why. A file that has one is refused: without
it, the file would say something else."""


def without_gone(text: str) -> str:
    """Return the JSON of a file without the keys that went; the text itself if it holds none, or is
    no JSON. Raise :class:`StudyError` for a value that nothing measures any more."""
    if not any(f'{key.rpartition(".")[2]}"' in text for key in (*GONE, "differs", "alone")):
        return text
    try:
        return json.dumps(drop_gone(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def drop_gone(values: Any, above: str = "") -> Any:
    """Return the values of a plan or a record without the keys that went, at any depth. ``above``
    leads to them. Raise :class:`StudyError` for a value that nothing measures any more."""
    if isinstance(values, list):
        return [drop_gone(inner, above) for inner in values]
    if not isinstance(values, dict):
        return values
    source = values.get("source")
    if above.endswith(".claims") and isinstance(source, dict):
        told = source.pop("differs", None)  # until 0.3 the source said it, in one sentence
        values |= {"differs": [str(told).rstrip(".")]} if told else {}
    gone = tuple(f".{key}" for key in GONE)
    for key, (value, why) in LEFT_OUT.items():
        section, _, leaf = key.rpartition(".")
        if above.endswith(f".{section}") and values.get(leaf) == value:
            raise StudyError(key=key, value=value, why=why)
    left = {
        key: drop_gone(inner, f"{above}.{key}")
        for key, inner in values.items()
        if not f"{above}.{key}".endswith(gone)
    }
    # Blocks `until` an interval was narrow are as if the most of them were planned.
    return left.get("most", 20) if above.endswith(".replicates") else left
