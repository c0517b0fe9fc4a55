"""The dataset step decides where images are opened, and what a manifest from a container has to hold."""

from pathlib import Path
from typing import Any

import pytest

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.base.files import write_if_changed
from study.data import folder
from study.data.sources import source_of
from study.host.engine.engine_choice import EngineChoice
from study.host.steps import prepare as step
from study.host.steps.in_image import Task
from tests.conftest import plan_at
from tests.unit.host.test_engines import BUILT


def planned(tmp_path: Path, photos: Path, batch_size: int) -> tuple[Plan, Path, str]:
    """A plan on the photographs for docker, its file, and the name of its data."""
    values = {"source": "folder", "path": str(photos), "image_size": 32}
    choice = EngineChoice("docker", "asked for", {"cpu": BUILT})
    plan = plan_at(choice, dataset=values, factors={"training.batch_size": [batch_size]})
    path = tmp_path / "plan.json"
    path.write_text(plan.model_dump_json(), encoding="utf-8")
    return plan, path, plan.runs[0].dataset


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, photos: Path) -> list[Task]:
    """The steps that containers took; each opens the photographs, and leaves the manifest of those that it could."""
    opened = folder.read_otherwise
    taken: list[Task] = []

    def refuse(*_: Any) -> None:
        raise AssertionError("a photograph was opened outside the container")

    def inside(task: Task, plan: Plan, run: Run, results: Path, log: Path) -> None:
        taken.append(task)
        with pytest.MonkeyPatch.context() as there:
            there.setattr(folder, "read_otherwise", opened)
            made = source_of(run.settings.dataset).make(run.settings.dataset, results, results)
        write_if_changed(Results(results).manifest(task.name), made.model_dump_json())

    monkeypatch.setattr(folder, "read_otherwise", refuse)
    monkeypatch.setattr(step, "in_a_container", inside)
    return taken


def test_photographs_are_opened_in_the_image_without_a_network_where_containers_serve(
    tmp_path: Path, photos: Path, steps: list[Task]
) -> None:
    _, path, name = planned(tmp_path, photos, 4)
    assert "folder, 16 images to train and 4 to validate" in step.prepare_dataset(
        path, name, tmp_path / "results", None
    )
    assert [(task.name, task.network, task.lent) for task in steps] == [(name, False, [])]


def test_a_manifest_that_no_run_can_use_is_not_kept(tmp_path: Path, photos: Path, steps: list[Task]) -> None:
    _, path, name = planned(tmp_path, photos, 14)
    for image in sorted((photos / "oiseau é").iterdir())[:5]:
        image.write_text("no image")
    with pytest.raises(StudyError, match=r"training\.batch_size"):
        step.prepare_dataset(path, name, tmp_path / "results", None)
    assert not Results(tmp_path / "results").manifest(name).exists()
    assert len(steps) == 1


def test_a_link_that_no_container_could_follow_is_said_before_one_starts(
    tmp_path: Path, photos: Path, steps: list[Task]
) -> None:
    shared = tmp_path / "elsewhere.jpg"
    (photos / "oiseau é" / "000.jpg").rename(shared)
    (photos / "oiseau é" / "000.jpg").symlink_to(shared)
    _, path, name = planned(tmp_path, photos, 4)
    with pytest.raises(StudyError, match=r"'oiseau é/000.jpg' is a link to outside the folder"):
        step.prepare_dataset(path, name, tmp_path / "results", None)
    assert steps == []
