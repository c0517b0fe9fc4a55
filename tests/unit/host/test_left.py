"""A step in a container: what it is lent, and what of what it left is taken, planted as hostile
code would."""

import os
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
from study.host.engine import lifetime
from study.host.engine.container import Mount
from study.host.engine.docker import Docker
from study.host.engine.engine_choice import EngineChoice
from study.host.steps import prepare as step
from study.host.steps.left import discard_odd, take
from study.host.steps.prepare import Task, dataset_task, in_a_container, weights_task
from study.host.supervise import Ended
from tests.conftest import plan_at
from tests.unit.host.test_engines import BUILT, described

DECISION = Path("tiny/weights/own.json")


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """The scratch folder's results, with one decision that the step may leave."""
    (tmp_path / "inside" / DECISION).parent.mkdir(parents=True)
    (tmp_path / "inside" / DECISION).write_text("decided")
    return tmp_path / "inside"


def test_only_what_a_step_may_leave_is_taken(inside: Path, tmp_path: Path) -> None:
    files, results = Results(inside), tmp_path / "results"
    kept = results / "tiny" / "records" / "bs4-r1.0a1b2c3d.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("measured")
    planted = [files.record("tiny", kept.name), files.report, files.plan("tiny"), files.hub / "y"]
    for path in (*planted, files.manifest("x")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("planted")
    take(inside, results, weights_task("tiny", "own", "nets:mine").left)
    assert {path for path in results.rglob("*") if path.is_file()} == {kept, results / DECISION}
    assert kept.read_text() == "measured"


@pytest.mark.parametrize("kind", ["link", "link to a folder", "pipe"])
def test_what_is_no_plain_file_is_refused_and_what_it_points_to_is_untouched(
    kind: str, inside: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "caller" / "secret"
    secret.parent.mkdir()
    secret.write_text("secret")
    secret.chmod(0o600)
    planted = Results(inside).unpacked / "x"
    planted.parent.mkdir(parents=True)
    if kind == "link":
        planted.symlink_to(secret)
    elif kind == "link to a folder":
        planted.symlink_to(secret.parent, target_is_directory=True)
    else:
        os.mkfifo(planted)
    may_be = dataset_task("patterns.0a1b2c3d", unpacks=True).left
    said = "'x': the container left a link or a device in place of a file"
    with pytest.raises(StudyError, match=said):
        take(inside, tmp_path / "results", may_be)
    assert not (tmp_path / "results").exists()
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("secret", 0o600)


def test_a_result_that_is_a_link_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("another's")
    (tmp_path / "result.json").symlink_to(tmp_path / "record.json")
    (tmp_path / "folder").mkdir()
    (tmp_path / "telemetry.csv").write_text("samples")
    (tmp_path / "large").write_text("large")
    names = dict.fromkeys(["result.json", "folder", "telemetry.csv", "absent"], 1000) | {"large": 4}
    discard_odd(tmp_path, names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.json", "telemetry.csv"]


def test_a_step_sees_what_the_host_brought_and_a_failed_one_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Results(tmp_path)
    (tmp_path / "images").mkdir()
    image = described(BUILT, "docker", "x")
    files.image("cpu").write_text(image.model_dump_json(), encoding="utf-8")
    plan = plan_at(EngineChoice("docker", "asked for", {"cpu": BUILT}))
    run, ends = plan.runs[0], [Ended(1, ["something else", "error: it is damaged"]), Ended(0, [])]

    def enter(
        engine: Docker, image: str, command: Any, scratch: Path, mounts: Any, *_: Any, **how: Any
    ) -> Any:
        assert Mount(files.downloads, "/scratch/results/data/downloads") in mounts
        inside = Results(scratch / "results")
        for path in (inside.unpacked / "images", inside.manifest(run.dataset)):
            path.parent.mkdir(parents=True)
            path.write_text("{}")
        return ends.pop(0)

    files.downloads.mkdir(parents=True)
    monkeypatch.setattr(lifetime, "enter", enter)
    task = dataset_task(run.dataset, unpacks=True)
    with pytest.raises(StudyError, match=r"^it is damaged$"):
        in_a_container(task, plan, run, tmp_path, tmp_path / "log")
    assert not files.unpacked.exists()
    in_a_container(task, plan, run, tmp_path, tmp_path / "log")
    assert files.manifest(run.dataset).is_file()
    assert (files.unpacked / "images").is_file()


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
    """The steps that containers took; each opens the photographs, and leaves the manifest of those
    that it could."""
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


def test_photographs_are_opened_in_the_image(
    tmp_path: Path, photos: Path, steps: list[Task]
) -> None:
    _, path, name = planned(tmp_path, photos, 4)
    assert "folder, 16 images to train and 4 to validate" in step.prepare_dataset(
        path, name, tmp_path / "results", None
    )
    assert [task.name for task in steps] == [name]


def test_a_manifest_that_no_run_can_use_is_not_kept(
    tmp_path: Path, photos: Path, steps: list[Task]
) -> None:
    _, path, name = planned(tmp_path, photos, 14)
    for image in sorted((photos / "oiseau é").iterdir())[:5]:
        image.write_text("no image")
    with pytest.raises(StudyError, match=r"training\.batch_size"):
        step.prepare_dataset(path, name, tmp_path / "results", None)
    assert not Results(tmp_path / "results").manifest(name).exists()
    assert len(steps) == 1
