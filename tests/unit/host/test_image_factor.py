"""Versions of the software as a factor: each level of `image` is an image of its own."""

from pathlib import Path
from typing import Any

import pytest

from study.artifacts.plan import Plan
from study.artifacts.record import without_paths
from study.config.selection import Selection
from study.host.engine.engine_choice import IN_IMAGES, EngineChoice, request
from tests.conftest import plan_at
from tests.errors import refused

BASE = "other:1"


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two locks that differ in one package, and a copy of the first."""
    monkeypatch.chdir(tmp_path)
    for name, version in (("old.lock", "1.0"), ("new.lock", "2.0"), ("copy.lock", "1.0")):
        (tmp_path / name).write_text(f"tqdm=={version}\n", encoding="utf-8")
    return ["old.lock", "new.lock"]


def planned(levels: list[str], engine: str = "docker", **changes: Any) -> Plan:
    selection = Selection(base_image=BASE)
    wanted = {d: request(selection, d) for d in IN_IMAGES} if engine != "none" else {}
    return plan_at(EngineChoice(engine, "a test", wanted), factors={"image": levels}, curve=None, **changes)


def keys(plan: Plan) -> dict[str, set[str]]:
    return {
        level: {run.key for run in plan.runs if run.settings.image == level} for level in plan.study.factors["image"]
    }


def test_each_level_is_an_image_of_the_plan_and_a_key_of_its_own(locks: list[str]) -> None:
    plan = planned([*locks, "registry/study:2"])
    assert {run.unavailable for run in plan.runs} == {None}
    assert len(set.union(*keys(plan).values())) == 3
    used = {run.settings.image: plan.images[run.image] for run in plan.runs}
    assert [used[level].kind for level in (*locks, "registry/study:2")] == ["built", "built", "reference"]
    assert {used[level].base_image for level in locks} == {BASE}
    assert used["old.lock"].reference != used["new.lock"].reference
    assert Path(str(used["old.lock"].lock)).is_absolute()
    assert plan.preparing_image() in {run.image for run in plan.runs}


def test_the_same_lock_under_another_name_is_the_same_image(locks: list[str]) -> None:
    assert keys(planned(["old.lock"]))["old.lock"] == keys(planned(["copy.lock"]))["copy.lock"]


def test_on_the_host_such_runs_are_left_out_with_the_reason(locks: list[str]) -> None:
    assert {run.unavailable for run in planned(locks, "none").runs} == {
        "its image needs a container engine, and runs execute on the host (a test)"
    }


def test_a_lock_that_is_not_there_is_refused(locks: list[str]) -> None:
    with refused("image", "gone.lock"):
        planned([*locks, "gone.lock"])


def test_a_record_names_a_lock_without_its_folder(locks: list[str], tmp_path: Path) -> None:
    plan = planned([str(tmp_path / "old.lock")])
    assert without_paths(plan.runs[0].settings).image == "old.lock"
