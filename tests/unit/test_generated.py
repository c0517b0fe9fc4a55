"""The files that follow from the models: an editor's schemas, the keys in ``config/README.md``, the
columns of a table.

``python -m tests.unit.test_generated``, or ``make schema``, writes them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from study.artifacts import timing
from study.base.files import ROOT, write_whole
from study.base.strict import one_line
from study.config.keys import Values
from study.config.rules import RULES
from study.config.selection import Selection
from study.config.settings import KEYS
from study.config.study import StudyFile

NAMES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true`, `false`",
    "null": "none",
}
"""The types as a reader of YAML or of a table knows them."""
BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def schema(model: type[BaseModel]) -> str:
    """The schema with which an editor checks a file."""
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | model.model_json_schema()
    # A description takes several lines of the code.
    return json.dumps(found, indent=1, ensure_ascii=False).replace("\\n", " ") + "\n"


def rows(head: str, cells: Iterable[Sequence[str]]) -> str:
    lines = [head, " | ".join("---" for _ in head.split(" | ")), *map(" | ".join, cells)]
    return "\n".join(f"| {line} |" for line in lines)


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The table of a model's keys, its own before those of its base, then each model that is in it
    under a heading."""
    told, cells = model.model_json_schema()["properties"], []
    own = model.__annotations__
    fields = sorted(model.model_fields.items(), key=lambda item: item[0] not in own)
    for name, field in fields:
        words = one_line(field.description or "")
        cells.append([f"`{prefix}{name}`", default(field), allowed(told[name]), words])
    yield rows("key | default | allowed | what it does", cells)
    for name, field in fields:
        for inner in models_of(field.annotation):
            yield f"### `{name}`"
            yield one_line(inner.__doc__ or "")
            yield from keys(inner, f"{prefix}{name}{'[]' * (told[name].get('type') == 'array')}.")


def default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    return (
        "see below"
        if isinstance(value, BaseModel)
        else "none"
        if value is None
        else f"`{json.dumps(value)}`"
    )


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a value may be, or hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_of(inner)


def allowed(value: dict[str, Any]) -> str:
    """What a value may be, in words."""
    if either := value.get("anyOf", value.get("oneOf")):
        return " or ".join(map(allowed, either))
    if "enum" in value or "const" in value:
        return ", ".join(f"`{one}`" for one in value.get("enum", [value.get("const")]))
    if "$ref" in value:
        return "the keys below"
    words = NAMES.get(value.get("type", ""), "anything")
    if value.get("type") == "array":
        words = f"list of {allowed(value['items'])}"
    if value.get("type") == "object":
        inner = value.get("additionalProperties")
        words = "keys with " + (allowed(inner) if isinstance(inner, dict) else "values")
    return ", ".join(
        [words, *(f"{sign} {value[name]}" for name, sign in BOUNDS.items() if name in value)]
    )


def readme() -> str:
    rules = [(f"`{rule.key}`", when(rule.when), rule.allowed.names, rule.why) for rule in RULES]
    idle = []
    for key, known in KEYS.items():
        idle += [(f"`{key}`", when(one.when), one.cure) for one in known.idle]
    sections = [
        "# Configuration",
        "`make schema` generates this page from the models in `study/config`; a test fails "
        "if it differs.",
        "## `config/config.yaml`",
        "`snakemake --cores 1 --config key=value` changes the same keys, and so does `make "
        "study ARGS='--config "
        "key=value'`. Quote what has brackets or braces, for shells expand them: "
        "`snakemake --cores 1 --config 'studies=[batch-size,speedup]' "
        "'overrides={training.batch_size: [8, 16]}'`. "
        "Strings inside `overrides` are read as YAML.",
        *keys(Selection),
        "## `config/studies/<name>.yaml`",
        "Unknown keys are errors. Any dotted key in the tables below can be a factor: "
        "`factors: {training.batch_size: [16, 32]}`.",
        *keys(StudyFile),
        "## Which keys go together",
        "With the values in the second column, a run's key has one of the allowed values. A "
        "combination that breaks a rule is an error before any run starts.",
        rows("key | with | allowed | because", rules),
        "## Which keys have an effect",
        "With the values in the second column, a run's key changes nothing. To give it there, or "
        "two levels of it, is an error before any run starts. A key of a study's file may lose its "
        "effect by what a start sets.",
        rows("key | without effect with | it has one with", idle),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def when(given: Mapping[str, Values]) -> str:
    return "; ".join(f"`{key}`: {values.names}" for key, values in given.items())


def timings() -> str:
    kinds = {int: "integer", float: "number", str: "string", bool: "boolean"}
    shown = timing.resources()
    cells = []
    for name, field in timing.Timing.model_fields.items():
        heading = shown[name].heading if name in shown else ""
        told = (
            "".join(mark.name for mark in field.metadata if isinstance(mark, timing.Unit)),
            NAMES[kinds[timing.kind(name)]],
            one_line(field.description or ""),
            heading,
        )
        cells.append([f"`{name}`", *told])
    sections = [
        "# The columns of `timings.csv`",
        "`make schema` generates this page from `study/artifacts/timing.py`; a test fails if "
        "it differs.",
        one_line(str(timing.Timing.__doc__)),
        rows("column | unit | type | what it is | heading in the report", cells),
    ]
    return "\n\n".join(sections) + "\n"


GENERATED = {
    "workflow/schemas/config.schema.json": schema(Selection),
    "workflow/schemas/study.schema.json": schema(StudyFile),
    "config/README.md": readme(),
    "docs/timings.md": timings(),
}


@pytest.mark.parametrize("path", GENERATED)
def test_generated_files_are_those_of_the_models(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == GENERATED[path], "run: make schema"


if __name__ == "__main__":
    for path, text in GENERATED.items():
        write_whole(ROOT / path, text)
