"""What a container left: planted as its hostile code would, and taken or refused."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from study.artifacts.layout import Results
from study.base.errors import StudyError
from study.base.files import remove_tree
from study.config.settings import Settings
from study.host.engine import lifetime
from study.host.engine.lifetime import scratch_folder
from study.host.steps import attempt
from study.host.steps.in_image import dataset_task, weights_task
from study.host.steps.left import discard_odd, take

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
    planted = [files.record("tiny", kept.name), files.report, files.plan("tiny"), files.manifest("x"), files.hub / "y"]
    for path in planted:
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
    planted = inside / "data" / "downloads" / "x"
    planted.parent.mkdir(parents=True)
    if kind == "link":
        planted.symlink_to(secret)
    elif kind == "link to a folder":
        planted.symlink_to(secret.parent, target_is_directory=True)
    else:
        os.mkfifo(planted)
    with pytest.raises(StudyError, match="'x': the container left a link or a device in place of a file"):
        take(inside, tmp_path / "results", dataset_task("patterns.0a1b2c3d", downloads=True).left)
    assert not (tmp_path / "results").exists()
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("secret", 0o600)


def test_a_file_is_copied_with_the_mode_of_the_callers_own_files(inside: Path, tmp_path: Path) -> None:
    (inside / DECISION).chmod(0o4777)
    take(inside, tmp_path / "results", [DECISION])
    taken, own = tmp_path / "results" / DECISION, tmp_path / "own"
    own.touch()
    assert taken.stat().st_mode == own.stat().st_mode
    (inside / DECISION).write_text("changed later")
    assert taken.read_text() == "decided"


def test_a_result_that_is_a_link_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("another's")
    (tmp_path / "result.json").symlink_to(tmp_path / "record.json")
    (tmp_path / "folder").mkdir()
    (tmp_path / "telemetry.csv").write_text("samples")
    (tmp_path / "large").write_text("large")
    deep = _deep(tmp_path / "deep")
    names = dict.fromkeys(["result.json", "folder", "telemetry.csv", "absent", "deep"], 1000) | {"large": 4}
    discard_odd(tmp_path, names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.json", "telemetry.csv"], deep


def _deep(folder: Path) -> int:
    """Make folders below each other, more than Python's own functions follow."""
    folder.mkdir()
    depth = 1500
    code = f"import os\nfor _ in range({depth}): os.mkdir('d'); os.chdir('d')"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    return depth


def test_a_tree_that_is_too_deep_is_refused_and_removed(inside: Path, tmp_path: Path) -> None:
    _deep(inside / "tiny" / "weights" / "deep")
    with pytest.raises(StudyError, match="more than 20 folders below each other"):
        take(inside, tmp_path / "results", [Path("tiny/weights")])
    remove_tree(inside)  # pytest's own removal would end in an error
    with scratch_folder(tmp_path / "results") as scratch:
        _deep(scratch / "deep")
        (scratch / "deep").chmod(0)
    assert list((tmp_path / "results").iterdir()) == []


def test_a_folder_on_the_way_that_is_a_link_is_refused(inside: Path, tmp_path: Path) -> None:
    (tmp_path / "caller").mkdir()
    (tmp_path / "caller" / "own.json").write_text("the caller's")
    shutil.rmtree(inside / "tiny" / "weights")
    (inside / "tiny" / "weights").symlink_to(tmp_path / "caller")
    with pytest.raises(StudyError, match="'weights': the container left a link"):
        take(inside, tmp_path / "results", [DECISION])


@pytest.mark.parametrize("times", ["\xff", "0m1.2.3s 0m1s\n0m1s 0m1s", "9" * 900, "9" * 400 + "m1s 0m1s\n0m1s 0m1s"])
def test_times_that_no_shell_prints_are_unknown(times: str) -> None:
    assert attempt.shell_times(times) is None


def test_a_container_on_a_gpu_finds_the_code_that_the_driver_compiled_for_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its home folder ends with it: each run would compile again, and start five times as slowly as on the host."""
    run = SimpleNamespace(settings=Settings(device="cuda"), model_copy=lambda **_: None)
    context = SimpleNamespace(run=run, results=tmp_path, plan=SimpleNamespace(name="x", engine=""), log=None, title="")
    found = []

    def enter(*given: object, environment: dict[str, str], **_: object) -> str:
        assert isinstance(given[3], Path)
        cache = given[3] / Path(environment["CUDA_CACHE_PATH"]).name
        found.append([path.name for path in cache.iterdir()])
        (cache / "index").write_text("compiled")
        return "ended"

    monkeypatch.setattr(lifetime, "enter", enter)
    for name in ("engine", "run_mounts", "_write_job"):
        monkeypatch.setattr(attempt, name, lambda *_: [])
    for number in ("1", "2"):
        scratch = tmp_path / "scratch" / number
        scratch.mkdir(parents=True)
        image = SimpleNamespace(run_as="", libraries={})
        assert attempt._in_a_container(context, image, scratch) == "ended"  # type: ignore[arg-type, comparison-overlap]
    assert found == [[], ["index"]]
