"""What a run reads is what its manifest lists, or the run fails and says which file is another."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from study.artifacts.layout import Results
from study.artifacts.record import JobResult
from study.artifacts.run import RESULT, Job
from study.base.files import write_whole
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.keys import Parts
from study.host.steps.prepare import make_dataset
from study.training.common import checked_inputs
from study.training.job import execute
from tests.conftest import ROOT, SMALL_NET, tiny_plan
from tests.unit.artifacts.test_records import WEIGHTS

Shapes = dict[str, list[int]]
DRAWN = {"source": "generated", "images": 20, "channels": 3, "image_size": 32}
LASTING = """
import threading, time, torch

def net(classes):
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, classes))
"""


class Prepared:
    """A run on the user's photographs, or on drawn patterns, whose data have been made."""

    def __init__(
        self,
        results: Path,
        model: str = SMALL_NET["name"],
        parameters: Shapes | None = None,
        **dataset: object,
    ) -> None:
        plan = tiny_plan(dataset=DRAWN | dataset, model={"name": model, "weights": "none"})
        self.run = plan.runs[0]
        self.manifest = make_dataset(plan, self.run.dataset, results)
        self.folder = Results(results).data(self.run.dataset)
        self.job = Job(run=self.run, study=plan.name, results=str(results), seed=1)
        decided = WEIGHTS.model_copy(update={"model": model, "parameters": parameters})
        write_whole(
            Results(results).weights(plan.name, self.run.weights), decided.model_dump_json()
        )

    def result(self, packages: Mapping[str, str] = {}) -> JobResult:
        return execute(self.job.model_copy(update={"packages": packages}))


def change(path: Path) -> None:
    """Change the file's last byte, and leave it its size and its time."""
    before, whole = path.stat(), bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_file_of_the_data_that_was_replaced_or_is_gone_fails_the_run_by_name(
    photos: Path, tmp_path: Path
) -> None:
    prepared = Prepared(tmp_path / "results", source="folder", path=str(photos))
    assert checked_inputs(prepared.job).used.sha256 == prepared.manifest.sha256
    name = prepared.manifest.items[3].name
    change(photos / name)
    result = prepared.result()
    assert (result.outcome, result.data) == ("failed", None)
    assert str(result.message).startswith(
        f"{name}: has changed since the manifest was made (its checksum is "
    )
    assert str(result.message).endswith("put it back, or touch it, which makes a new manifest")
    drawn = Prepared(tmp_path / "drawn", classes=3)
    change(drawn.folder / "labels.npy")
    assert str(drawn.result().message).startswith("labels.npy: has changed since")
    (photos / name).unlink()
    assert str(prepared.result().message).startswith(
        f"{name}: cannot be read (No such file or directory)"
    )


def test_a_thread_that_a_model_left_does_not_keep_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread would sleep for an hour, and the process wait for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lasting.py").write_text(LASTING)
    prepared = Prepared(tmp_path / "results", "lasting:net")
    (tmp_path / "job.json").write_text(prepared.job.model_dump_json())
    command = [sys.executable, "-m", "study.training.job", "job.json", "."]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, timeout=300)
    result = JobResult.model_validate_json((tmp_path / RESULT).read_text())
    assert (result.outcome, result.message) == ("ok", None)


def test_a_record_holds_the_versions_of_the_packages_in_the_key_and_a_run_with_another_one_fails_and_names_both(
    tmp_path: Path,
) -> None:
    """As where someone installs another torch during a start, or where a node of a cluster has
    another one."""
    prepared = Prepared(tmp_path / "results")
    there = Parts("tiny", EngineChoice("none", "")).installed(prepared.run.settings)
    good, failed = (
        prepared.result(there),
        prepared.result(there | {"torch": "1.0", "absent": "2.0"}),
    )
    assert good.outcome == "ok" and good.machine
    assert there.items() - good.machine.libraries.items() == {("python", good.machine.python)}
    assert (failed.outcome, failed.measurement) == ("failed", None)
    assert f"torch {there['torch']} in place of 1.0" in str(failed.message)
    assert "absent none in place of 2.0" in str(failed.message)
    assert failed.machine and failed.machine.libraries["torch"] == there["torch"]


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        (
            {"head.weight": [2, 9]},
            "head.weight has the shape (2, 3072), and had (2, 9) when the model was tried",
        ),
        ({"head.weight": [2, 3072]}, "head.bias has the shape (2,), and had nothing"),
        (
            {"body": [1], "head.weight": [2, 3072], "head.bias": [2]},
            "body has the shape nothing, and had (1,)",
        ),
    ],
)
def test_a_run_whose_network_has_other_parameters_than_the_one_that_was_tried_fails(
    decided: Shapes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a factory which goes by the time of day."""
    (tmp_path / "varying.py").write_text(
        "import torch\n\nclass net(torch.nn.Module):\n    def __init__(self, classes):\n     "
        "   super().__init__()\n"
        "        self.head = torch.nn.Linear(3072, classes)\n\n"
        "    def forward(self, images):\n        return self.head(images.flatten(1))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    result = Prepared(tmp_path / "results", "varying:net", decided).result()
    assert result.outcome == "failed"
    assert str(result.message).startswith(
        f"model.name: 'varying:net' is not allowed: its parameter {words}"
    )
