"""The command that measures inference: what each precision keeps of a trained network, what is
timed, and what is refused."""

import importlib.util
import json
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
import torch

from study.base.files import ROOT
from study.config.load import read_study
from study.config.selection import Selection
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan

SCRIPT = ROOT / "replications" / "inference" / "answer.py"
MNIST = "replications.mnist_report.networks:mnist_cnn"
SMALL = ["--model", MNIST, "--channels", "1", "--image-size", "28", "--classes", "2"]
SMALL += ["--images", "200", "--epochs", "30", "--batches", "3", "--warm-up-batches", "1"]
STUDIES = ("image-size", "channels-last-cpu", "reduce-overhead")


@pytest.fixture(scope="module")
def answer() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("answer", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _with_the_project_as_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [*sys.path])


def told(answer: ModuleType, *arguments: str) -> dict[str, Any]:
    """What a run in this process prints."""
    values: dict[str, Any] = answer.measured(answer.asked_for([*SMALL, *arguments]))
    return values


def test_the_command_prints_a_line_as_the_work_begins_and_one_of_json() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *SMALL, "--epochs", "1", "--batch-size", "30"],
        capture_output=True,
        text=True,
        check=True,
    )
    ready, line = done.stdout.splitlines()
    values = json.loads(line)
    assert ready == "ready"
    seconds = values["batch_seconds"]
    assert len(seconds) == 3
    assert values["thousand_images_seconds"] == pytest.approx(1000 * sum(seconds) / (3 * 30))
    assert values["int8_convolutions"] is None


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp32_onnx", "int8"])
def test_every_precision_asks_the_same_weights_and_keeps_their_accuracy(
    answer: ModuleType, precision: str
) -> None:
    """Within five points, in batches of another size. All convolutions are of integers in int8."""
    if precision in ("fp32_onnx", "int8"):
        for name in ("onnx", "onnxruntime", "onnxscript"):
            pytest.importorskip(name, reason=f"{precision} needs {name}")
    size = str(5 + len(precision))
    plain = told(answer, "--precision", "fp32")
    other = told(answer, "--precision", precision, "--batch-size", size)
    assert plain["fp32_accuracy"] == plain["accuracy"] > 0.85
    assert other["weights_sha256"] == plain["weights_sha256"]
    assert other["accuracy"] == pytest.approx(plain["accuracy"], abs=0.05)
    assert other["int8_convolutions"] == (1.0 if precision == "int8" else None)
    assert len(other["batch_seconds"]) == -(-40 // int(size)), "each image counts, once"


def test_a_slow_batch_is_in_the_list_and_warm_up_is_not(
    answer: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, calls = [0.0], list[int]()

    def slow(images: torch.Tensor) -> torch.Tensor:
        calls.append(len(images))
        clock[0] += 4.0 if len(calls) in (1, 6) else 0.25
        return torch.zeros(len(images), 2)

    monkeypatch.setattr(answer.time, "perf_counter", lambda: clock[0])
    given = answer.asked_for([*SMALL, "--batch-size", "4", "--batches", "12"])
    valid = (torch.zeros(8, 1, 2, 2), torch.tensor([0, 1] * 4))
    seconds, accuracy = answer.answered(slow, lambda images: images, valid, given)
    assert seconds == [0.25] * 4 + [4.0] + [0.25] * 7
    assert (accuracy, {*calls}) == (0.5, {4})


def test_channels_last_answers_as_the_plain_order_does(answer: ModuleType) -> None:
    plain, other = (
        answer.measured(
            answer.asked_for(["--images", "20", "--image-size", "32", "--epochs", "0", *more])
        )
        for more in (["--batches", "1"], ["--batches", "1", "--channels-last"])
    )
    assert plain["weights_sha256"] == other["weights_sha256"]
    assert plain["accuracy"] == other["accuracy"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--precision", "tf32"], "only a GPU"),
        (["--cuda-graph"], "only a GPU"),
        (["--precision", "int8", "--compile"], "a compiler of its own"),
        (["--model", "no_such"], "no such classifier"),
        (["--batches", "0"], "1 is the least"),
    ],
)
def test_what_cannot_be_executed_is_one_line(
    answer: ModuleType, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer.main(["--images", "20", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --")
    assert words in line


def test_int8_is_refused_on_a_gpu(
    answer: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(answer.torch.cuda, "is_available", lambda: True)
    assert answer.main(["--device", "cuda", "--precision", "int8"]) == 2
    assert "on a CPU only" in capsys.readouterr().err


def test_a_missing_package_is_one_line(
    answer: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert answer.main([*SMALL, "--epochs", "0", "--precision", "int8"]) == 2
    assert "needs onnx" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["full", "reduced"])
@pytest.mark.parametrize(
    "file",
    [
        "config/studies/inference.yaml",
        *(f"replications/field/studies/{name}.yaml" for name in STUDIES),
    ],
)
def test_each_study_of_it_plans_runs_whose_arguments_the_script_takes(
    answer: ModuleType, file: str, size: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer.torch.cuda, "is_available", lambda: True)
    study = read_study(file, [], Selection(size=size))
    plan = make_plan("x", study, EngineChoice("none", "asked for"), {"cpu": None, "cuda": None})
    assert study.total == "printed_seconds"
    for run in plan.runs:
        answer.asked_for(run.settings.words("1")[2:])
        assert not run.unavailable
