"""Whatever keys a user sets to whatever they allow: each run has the values that were asked for, or
a sentence says no.

A value that changes what a run does changes its key, so that no record of another run counts in its
place.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from study.artifacts.plan import Plan
from study.base.errors import StudyError
from study.config.load import read_selection, read_study
from study.config.settings import Keys, get, setting_keys
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan
from tests.conftest import HERE, repeats, study_values

SCHEMA = Keys.model_json_schema()
TEXTS = {
    "image": "site/study:1",
    "machine": "a100",
    "dataset.path": "photos",
    "model.name": "resnet34",
}
NO_PART_OF_A_RUN = {"limits.timeout_seconds", "seed", "image", "dataset.seed"}
"""Keys that change no record, or change it by way of the data, the order and the image, whose names
have them."""
MANY = settings(
    max_examples=len(repeats(200, 1500)), derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def field(key: str) -> Mapping[str, Any]:
    """What the schema says of a dotted key."""
    found: Mapping[str, Any] = SCHEMA
    for part in key.split("."):
        if "$ref" in found:
            found = SCHEMA["$defs"][found["$ref"].rpartition("/")[2]]
        found = found["properties"][part]
    return found


def values(key: str, told: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a user would give to a key."""
    if "anyOf" in told:
        return st.one_of([values(key, one) for one in told["anyOf"]])
    if "enum" in told or "const" in told:
        return st.sampled_from(told.get("enum") or [told["const"]])
    match told.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(int(told.get("minimum", 0)), int(told.get("minimum", 0)) + 12)
        case "number":
            return st.sampled_from([0.1, 0.25, 0.5, 1.0])
        case "null":
            return st.none()
    return st.just(TEXTS.get(key, "none"))


KEYS = [key for key in setting_keys() if key != "device"]


@st.composite
def changes(draw: st.DrawFn, most: int = 3) -> dict[str, Any]:
    """A few keys with a value each."""
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=most, unique=True))
    return {key: draw(values(key, field(key))) for key in keys}


BASE = study_values(
    factors={"device": ["cpu"]}, curve=None, dataset={"source": "generated", "images": 40}
)


def planned(folder: Path, overrides: Mapping[str, Any]) -> Plan:
    """The plan of a tiny study with these overrides."""
    (folder / "tiny.yaml").write_text(yaml.safe_dump(BASE), encoding="utf-8")
    selection = read_selection({"studies": ["tiny"], "overrides": dict(overrides)})
    return make_plan(
        "tiny", read_study("tiny", [folder], selection), EngineChoice("none", "asked for"), HERE
    )


def test_a_run_has_each_value_that_was_asked_for_and_a_key_that_tells_it_from_others(
    tmp_path: Path,
) -> None:
    made, (before,) = [], planned(tmp_path, {}).runs

    @MANY
    @given(changes())
    def is_in_force_or_refused(asked: dict[str, Any]) -> None:
        try:
            (run,) = planned(tmp_path, asked).runs
        except StudyError as refusal:
            assert str(refusal).isprintable()
            assert any(key.rpartition(".")[2] in str(refusal) for key in asked), (
                asked,
                str(refusal),
            )
            return
        made.append(run)
        has = {key: get(run.settings, key) for key in asked}
        assert {key: has[key] for key, value in asked.items() if value != "auto"} == {
            key: value for key, value in asked.items() if value != "auto"
        }
        changed = {
            key for key, value in has.items() if value != get(before.settings, key)
        } - NO_PART_OF_A_RUN
        assert (run.key != before.key) or not changed, asked

    is_in_force_or_refused()
    assert len(made) > len(repeats(200, 1500)) / 10


@st.composite
def factor(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """A key with two values."""
    key = draw(st.sampled_from(KEYS))
    levels = [draw(values(key, field(key))) for _ in range(2)]
    assume(str(levels[0]) != str(levels[1]))
    return key, levels


def test_two_levels_are_two_runs_with_names_of_their_own_or_are_refused(tmp_path: Path) -> None:
    made = []

    @MANY
    @given(factor())
    def are_told_apart_or_refused(asked: tuple[str, list[Any]]) -> None:
        key, levels = asked
        try:
            plan = planned(tmp_path, {f"factors.{key}": levels})
        except StudyError as refusal:
            assert str(refusal).isprintable()
            assert key.rpartition(".")[2] in str(refusal), (asked, str(refusal))
            return
        made.append(plan)
        assert len(plan.runs) == 2
        for told in ("name", "file", "setting", *([] if key in NO_PART_OF_A_RUN else ["key"])):
            assert len({str(getattr(run, told)) for run in plan.runs}) == 2, (told, asked)
        assert len({run.setting.label for run in plan.runs}) == 2
        if "auto" not in levels:
            assert sorted(str(get(run.settings, key)) for run in plan.runs) == sorted(
                map(str, levels)
            )

    are_told_apart_or_refused()
    assert len(made) > len(repeats(200, 1500)) / 10
