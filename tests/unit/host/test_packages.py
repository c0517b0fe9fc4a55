"""Versions of the software as a factor: on the host each level of `environment` is made from a
lock, and each of `image` is an image."""

import os
from pathlib import Path
from typing import Any

import pytest

from study.artifacts.block import blocks_of
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record import without_paths
from study.base.files import PACKAGE
from study.config.selection import Selection
from study.host import packages
from study.host.engine.engine_choice import DEVICES, EngineChoice, request
from study.host.fork_servers import kind_of
from study.host.plan import checks, forecast
from tests.conftest import plan_at
from tests.errors import refused


@pytest.fixture(autouse=True)
def _locks(here: Path) -> None:
    """Two locks that differ in one package, and a copy of the first."""
    for name, version in (("old.lock", "1.0"), ("new.lock", "2.0"), ("copy.lock", "1.0")):
        (here / name).write_text(f"tqdm=={version}\n", encoding="utf-8")


def planned(*levels: str | None, engine: str = "none", **changes: Any) -> Plan:
    return plan_at(
        EngineChoice(engine, "a test"), factors={"environment": [*levels]}, curve=None, **changes
    )


def test_each_lock_is_an_environment_and_a_key_of_its_own_beside_the_starts_packages() -> None:
    plan = planned("old.lock", "new.lock", None)
    assert {run.unavailable for run in plan.runs} == {None}
    assert len({run.key for run in plan.runs}) == 3
    assert [Path(lock).name for lock in plan.environments.values()] == ["old.lock", "new.lock"]
    assert {run.environment for run in plan.runs} == {*plan.environments, None}
    assert len({kind_of(run.settings) for run in plan.runs}) == 3


def test_the_content_of_a_lock_decides_and_not_its_name() -> None:
    assert planned("old.lock").runs[0].key == planned("copy.lock").runs[0].key
    with refused("environment", "copy.lock"):
        planned("old.lock", "copy.lock")


@pytest.mark.parametrize(
    ("lock", "engine"),
    [
        *(("nowhere.lock", "none"), ("old.lock", "docker"), ("x" * 300, "none")),
        *(("huge.lock", "none"), ("requirements.txt", "none")),
    ],
)
def test_what_is_no_lock_or_is_huge_and_one_beside_images_are_refused(
    lock: str, engine: str
) -> None:
    os.truncate("copy.lock", 2**41)  # a sparse file: its checksum would take an hour
    Path("copy.lock").rename("huge.lock")
    with refused("environment", lock):
        planned(lock, engine=engine)
    with refused("model.weights", "huge.lock"):
        plan_at(EngineChoice("none", "a test"), model={"weights": "huge.lock"})


def test_what_a_start_says_names_the_lock_and_a_record_holds_no_path(tmp_path: Path) -> None:
    plan = planned(str(tmp_path / "old.lock"))
    said = forecast.listed(plan, blocks_of(plan, Results(tmp_path))[0])
    assert "on the host with old.lock" in "\n".join(said)
    assert without_paths(plan.runs[0].settings).environment == "old.lock"


def test_an_environment_of_other_code_is_outdated(tmp_path: Path) -> None:
    plan, files = planned("old.lock"), Results(tmp_path / "results")
    (name,) = plan.environments
    python = Path(packages.python_of(name, files))
    python.parent.mkdir(parents=True)
    python.write_text("", encoding="utf-8")
    site = python.parents[1] / "lib" / "python3" / "site-packages"
    site.mkdir(parents=True)
    (site / "study").symlink_to(PACKAGE)
    files.environment(name).write_text("{}", encoding="utf-8")
    assert list(checks.outdated_preparation(plan, plan.runs, files)) == []
    (site / "study").unlink()
    (site / "study").symlink_to(tmp_path)  # the code of another installation
    assert list(checks.outdated_preparation(plan, plan.runs, files)) == [files.environment(name)]


BASE = "other:1"
LOCKS = ["old.lock", "new.lock"]


def with_images(levels: list[str], engine: str = "docker", **changes: Any) -> Plan:
    selection = Selection(base_image=BASE)
    wanted = {d: request(selection, d) for d in DEVICES} if engine != "none" else {}
    return plan_at(
        EngineChoice(engine, "a test", wanted), factors={"image": levels}, curve=None, **changes
    )


def keys(plan: Plan) -> dict[str, set[str]]:
    return {
        level: {run.key for run in plan.runs if run.settings.image == level}
        for level in plan.study.factors["image"]
    }


def test_each_level_is_an_image_of_the_plan_and_a_key_of_its_own() -> None:
    plan = with_images([*LOCKS, "registry/study:2"])
    assert {run.unavailable for run in plan.runs} == {None}
    assert len(set.union(*keys(plan).values())) == 3
    used = {run.settings.image: plan.images[run.image] for run in plan.runs}
    kinds = [used[level].kind for level in (*LOCKS, "registry/study:2")]
    assert kinds == ["built", "built", "reference"]
    assert {used[level].base_image for level in LOCKS} == {BASE}
    assert used["old.lock"].reference != used["new.lock"].reference
    assert Path(str(used["old.lock"].lock)).is_absolute()
    assert plan.preparing_image() in {run.image for run in plan.runs}


def test_on_the_host_such_runs_are_left_out_with_the_reason() -> None:
    assert {run.unavailable for run in with_images(LOCKS, "none").runs} == {
        "its image needs a container engine, and runs execute on the host (a test)"
    }


def test_a_lock_that_is_not_there_is_refused() -> None:
    with refused("image", "gone.lock"):
        with_images([*LOCKS, "gone.lock"])
