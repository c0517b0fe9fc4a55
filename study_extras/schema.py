"""The generated files: JSON Schemas, the keys in ``config/README.md``, the columns in ``docs/timings.md``.

``python -m study_extras.schema``, or ``make schema``, writes them from the models.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from study.artifacts import timing
from study.base.files import ROOT, write_whole
from study.base.strict import one_line
from study.config.claims import Claim, Share, Source
from study.config.effect import IDLE
from study.config.rules import RULES, Values
from study.config.sections import Dataset, Inference, Limits, Loader, Model, Training
from study.config.selection import Images, Selection
from study.config.settings import Keys
from study.config.study import Curve, Evidence, StudyFile, Until

SCHEMAS: dict[str, type[BaseModel]] = {"config": Selection, "study": StudyFile}
"""The files that a user writes, by the names of the schemas that an editor checks them with."""
CLAIMS: dict[type[BaseModel], str] = {Claim: "claims[].", Share: "claims[].shares[].", Source: "claims[].source."}
"""The models of a claim, with what stands before their keys."""
NAMES: dict[type[Any], str] = {int: "whole number", float: "number", str: "text", bool: "`true`, `false`"}
"""The types as a reader of YAML or of a table knows them."""


def generated_files() -> dict[str, str]:
    """Return the text of every generated file by its path from the repository's root."""
    files = {
        f"workflow/schemas/{name}.schema.json": json.dumps(
            {"$schema": "https://json-schema.org/draft/2020-12/schema"} | model.model_json_schema(),
            indent=1,
            ensure_ascii=False,
        ).replace("\\n", " ")  # of what takes several lines of the code
        + "\n"
        for name, model in SCHEMAS.items()
    }
    return files | {"config/README.md": _readme(), "docs/timings.md": _timings()}


def _readme() -> str:
    own = {key: field for key, field in StudyFile.model_fields.items() if key not in Keys.model_fields}
    plain = {key: field for key, field in Keys.model_fields.items() if key in ("task", "device", "process", "seed")}
    sections = [
        "# Configuration",
        "`make schema` generates this page from the models in `study/config`; a test fails if it differs.",
        "## `config/config.yaml`",
        "`snakemake --cores 1 --config key=value` changes the same keys, and so does `make study ARGS='--config "
        "key=value'`. Quote what has brackets or braces, for shells expand them: "
        "`snakemake --cores 1 --config 'studies=[batch-size,speedup]' 'overrides={training.batch_size: [8, 16]}'`. "
        "Strings inside `overrides` are read as YAML.",
        _table(Selection.model_fields),
        "### `images`",
        str(Images.__doc__).strip(),
        _table(Images.model_fields, "images."),
        "## `config/studies/<name>.yaml`",
        "Unknown keys are errors. Any dotted key in the tables below can be a factor: "
        "`factors: {training.batch_size: [16, 32]}`.",
        _table(own),
        "### `until`",
        str(Until.__doc__).replace("\n    ", "\n").strip(),
        _table(Until.model_fields, "replicates."),
        "### `curve`",
        _table(Curve.model_fields, "curve."),
        "### `evidence`",
        str(Evidence.__doc__).replace("\n    ", "\n").strip(),
        _table(Evidence.model_fields, "evidence."),
        "### `claims`",
        str(Claim.__doc__).replace("\n    ", "\n").strip(),
        *(_table(model.model_fields, prefix) for model, prefix in CLAIMS.items()),
        "### Keys of every run",
        _table(plain),
    ]
    for model in (Dataset, Model, Training, Loader, Inference, Limits):
        name = model.__name__.lower()
        sections += [f"### `{name}`", str(model.__doc__).strip(), _table(model.model_fields, f"{name}.")]
    sections += [
        "### Which keys go together",
        "With the values in the second column, a run's key has one of the allowed values. A combination that breaks a "
        "rule is an error before any run starts.",
        _rows(
            "key | with | allowed | because",
            [(f"`{rule.key}`", _when(rule.when), rule.allowed.names, rule.why) for rule in RULES],
        ),
        "### Which keys have an effect",
        "With the values in the second column, a run's key changes nothing. To give it there, or two levels of it, is "
        "an error before any run starts. A key of a study's file may lose its effect by what a start sets.",
        _rows(
            "key | without effect with | it has one with",
            [(f"`{row.key}`", _when(row.when), row.cure) for row in IDLE],
        ),
    ]
    return "\n\n".join(sections) + "\n"


def _timings() -> str:
    shown = timing.resources()
    rows = [
        [f"`{name}`", timing.unit(name) or "", NAMES[timing.kind(name)], _described(field),
         shown[name].heading if name in shown else ""]
        for name, field in timing.Timing.model_fields.items()
    ]  # fmt: skip
    return (
        "\n\n".join(
            [
                "# The columns of `timings.csv`",
                "`make schema` generates this page from `study/artifacts/timing.py`; a test fails if it differs.",
                str(timing.Timing.__doc__).replace("\n    ", "\n").strip(),
                _rows("column | unit | type | what it is | heading in the report", rows),
            ]
        )
        + "\n"
    )


def _described(field: FieldInfo) -> str:
    return one_line(field.description or "")


def _when(given: Mapping[str, Values]) -> str:
    return "; ".join(f"`{key}`: {values.names}" for key, values in given.items())


def _rows(head: str, rows: Iterable[Sequence[str]]) -> str:
    lines = [head, " | ".join("---" for _ in head.split(" | ")), *map(" | ".join, rows)]
    return "\n".join(f"| {line} |" for line in lines)


def _table(fields: dict[str, FieldInfo], prefix: str = "") -> str:
    rows = [[f"`{prefix}{name}`", _default(one), _allowed(one), _described(one)] for name, one in fields.items()]
    return _rows("key | default | allowed | what it does", rows)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(value, BaseModel):
        return "see below"
    return "none" if value is None else f"`{json.dumps(value)}`"


def _allowed(field: FieldInfo) -> str:
    bounds = []
    for limit in field.metadata:
        for sign, name in (("≥", "ge"), (">", "gt"), ("≤", "le"), ("<", "lt")):
            if getattr(limit, name, None) is not None:
                bounds.append(f"{sign} {getattr(limit, name)}")
    return ", ".join([_words(field.annotation), *bounds])


def _words(annotation: Any) -> str:
    """Return the name of a type as a reader of YAML knows it."""
    if hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    inner, origin = get_args(annotation), get_origin(annotation)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin is list:
        return "list of " + ("anything" if inner[0] is Any else _words(inner[0]))
    if origin is dict:
        return "keys with " + ("values" if inner[1] is Any else _words(inner[1]))
    if inner:
        return " or ".join(_words(item) for item in inner)
    if annotation is type(None):
        return "none"
    return NAMES.get(annotation, f"the keys of `{annotation.__name__.lower()}`")


if __name__ == "__main__":
    for path, text in generated_files().items():
        write_whole(ROOT / path, text)
        print(path)
