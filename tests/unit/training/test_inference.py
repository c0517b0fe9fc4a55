"""A trained network is asked in batches: what is timed, what a precision keeps, what the tables say
of it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from study.analysis.report.content import resources
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.run import Run
from study.artifacts.samples import InferenceSamples, Memory, TimedBatch
from study.config.sections import Inference
from study.config.settings import Settings
from study.host.engine.engine_choice import EngineChoice
from study.training.loops.inference import loop as inference_loop
from study.training.loops.inference import onnx_runtime
from study.training.loops.inference.loop import Network, convert, made_fast
from study.training.models import build as models
from tests.conftest import MNIST_CNN, SMALL_NET, PlantedClock, plan_at, tiny_plan
from tests.timings import table
from tests.unit.analysis.planted import analysis_of
from tests.unit.artifacts.test_records import make_record
from tests.unit.training.test_loops import make_job

SMALL: dict[str, Any] = {
    "dataset": {"source": "generated", "classes": 4, "image_size": 32, "images": 400},
    "model": SMALL_NET,
    "training": {"freeze_epochs": 0, "epochs": 4, "batch_size": 16},
}
PRECISIONS = ("fp32", "bf16", "fp32_onnx", "int8")


def plan_of(**changes: Any) -> Plan:
    values = {
        "task": "inference",
        "training": {"freeze_epochs": 0, "epochs": 1, "batch_size": 4},
        "inference": {"batches": 3, "warm_up_batches": 1},
        "factors": {"inference.precision": ["fp32", "int8"], "inference.batch_size": [1, 8]},
        "curve": {"x": "inference.batch_size", "y": "thousand_images_seconds"},
    }
    return tiny_plan(**(values | changes))


def run_of(precision: str = "fp32", batch_size: int = 8, batches: int = 3, **changes: Any) -> Run:
    asked = {
        "precision": precision,
        "batch_size": batch_size,
        "batches": batches,
        "warm_up_batches": 1,
    }
    return plan_of(inference=asked, factors={}, curve=None, **changes).runs[0]


def asked(folder: Path, run: Run) -> InferenceSamples:
    found = inference_loop.train(make_job(folder, run)).inference
    assert found
    return found


def check_answers(made: dict[str, Any], device: torch.device, tolerance: float) -> None:
    """Check the answers to two batches of a network that is made as ``made`` says against those of
    a plain one."""
    batches = torch.rand(2, 4, 3, 40, 40, generator=torch.Generator().manual_seed(0)).to(device)

    def answers(**values: Any) -> list[torch.Tensor]:
        settings = Settings.model_construct(inference=Inference.model_validate(values))
        model = (
            models.build("resnet18", classes=5, channels=3, image_size=40, seed=1).eval().to(device)
        )
        network = made_fast(convert(model, settings, iter(())), settings, batches[0])
        with torch.inference_mode():
            return [network.infer(network.takes(images)).clone() for images in batches]

    plain, other = answers(), answers(**made)
    assert not torch.allclose(plain[0], plain[1], atol=tolerance)
    for was, now in zip(plain, other, strict=True):
        assert torch.allclose(was, now, atol=tolerance)


class TestWhatIsTimed:
    def test_a_slow_batch_shows_in_the_99th_percentile_alone_and_warm_up_in_no_figure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: PlantedClock
    ) -> None:
        """Of 60 batches after one of warm-up each takes 0.25 s by a planted clock, the fortieth and
        the warm-up 4."""
        calls = []

        def sleepy(images: torch.Tensor) -> torch.Tensor:
            calls.append(len(images))
            clock.pass_by(4.0 if len(calls) in (1, 41) else 0.25)
            return images.flatten(1)[:, :2]

        monkeypatch.setattr(
            inference_loop, "convert", lambda *a: Network(sleepy, torch.float32, {})
        )
        samples = asked(tmp_path, run_of(batches=60))
        assert [batch.warm_up for batch in samples.batches] == [True] + [False] * 60
        assert [batch.seconds for batch in samples.batches] == [
            4.0,
            *[0.25] * 39,
            4.0,
            *[0.25] * 20,
        ]
        row = table_of(samples).iloc[0]
        assert (row["latency_p99_seconds"], row["latency_p50_seconds"]) == (4.0, 0.25)
        seconds = 59 * 0.25 + 4.0
        assert row["batches"] == 60
        assert row["thousand_images_seconds"] == pytest.approx(1000 * seconds / (60 * 8))
        assert row["images_per_second"] == pytest.approx(60 * 8 / seconds)
        assert row[["fit_seconds", "train_seconds", "steps"]].isna().all()

    @pytest.mark.parametrize("batch_size", [1, 5, 30])
    def test_every_validation_image_counts_once_whatever_the_batch_size(
        self, tmp_path: Path, batch_size: int
    ) -> None:
        run = run_of(
            batch_size=batch_size,
            batches=1,
            **SMALL | {"training": {"epochs": 1, "freeze_epochs": 0}},
        )
        measured = inference_loop.train(make_job(tmp_path, run))
        assert measured.inference
        assert measured.inference.accuracy == pytest.approx(measured.epochs[-1].accuracy)
        one_pass = -(-80 // batch_size)  # at least, in full batches
        assert [batch.images for batch in measured.inference.batches] == [batch_size] * (
            1 + one_pass
        )


class TestWhatAPrecisionKeeps:
    def test_every_precision_asks_the_same_weights_and_keeps_its_accuracy(
        self, tmp_path: Path
    ) -> None:
        """Within three points. Each runs in batches of its own size, from a run seed of its own."""
        trained = [
            inference_loop.train(
                make_job(tmp_path, run_of(precision, batch_size=5 + place, **SMALL))
            )
            for place, precision in enumerate(PRECISIONS)
        ]
        (reference,) = {measured.epochs[-1].accuracy for measured in trained}
        assert reference and reference > 0.85
        answers = [measured.inference for measured in trained if measured.inference]
        assert len({answer.weights_sha256 for answer in answers}) == 1
        assert [answer.accuracy for answer in answers] == pytest.approx(
            [reference] * len(PRECISIONS), abs=0.03
        )

    @pytest.mark.parametrize(
        "made",
        [
            {"memory_format": "channels_last"},
            pytest.param({"compile": True}, marks=pytest.mark.thorough),
        ],
    )
    def test_a_network_in_another_order_or_compiled_answers_each_batch_as_it_did(
        self, made: dict[str, Any]
    ) -> None:
        check_answers(made, torch.device("cpu"), 1e-4)

    @pytest.mark.parametrize(
        "name", [pytest.param("resnet18", marks=pytest.mark.thorough), MNIST_CNN["name"]]
    )
    def test_int8_executes_every_convolution_in_int8_and_the_same_each_time(
        self, name: str
    ) -> None:
        channels, size = (1, 28) if name == MNIST_CNN["name"] else (3, 40)
        model = models.build(name, classes=2, channels=channels, image_size=size, seed=1).eval()
        images = torch.rand(24, channels, size, size, generator=torch.Generator().manual_seed(0))
        convolutions = sum(isinstance(module, nn.Conv2d) for module in model.modules())
        with torch.no_grad():
            infer, operators = onnx_runtime.load(model, images[:2], torch.chunk(images, 2))
            again, _ = onnx_runtime.load(model, images[:2], torch.chunk(images, 5))
            exact = model(images)
        assert operators["QLinearConv"] == convolutions
        assert not {"Conv", "FusedConv", "Gemm", "MatMul"} & set(operators)
        assert torch.equal(infer(images), again(images))
        assert 0 < (infer(images) - exact).abs().max() < 0.2 * exact.abs().max()

    def test_the_runtime_without_quantisation_computes_what_torch_does(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = models.build(
            MNIST_CNN["name"], classes=10, channels=1, image_size=28, seed=1
        ).eval()
        images = torch.rand(7, 1, 28, 28)
        with torch.no_grad():
            infer, operators = onnx_runtime.load(model, images[:2], None)
            assert torch.allclose(infer(images), model(images), atol=1e-5)
        assert "QLinearConv" not in operators
        monkeypatch.setattr(onnx_runtime, "quantise", lambda path, calibration: path)
        with pytest.raises(RuntimeError, match="every convolution in floating point"):
            onnx_runtime.load(model, images[:2], [images])


class TestPlanning:
    def test_a_gpu_has_no_int8_and_the_plan_says_so_of_these_runs_alone(self) -> None:
        factors = {"device": ["cpu", "cuda"], "inference.precision": list(PRECISIONS)}
        values: dict[str, Any] = {"task": "inference", "factors": factors, "curve": None}
        plan = plan_at(EngineChoice("none", "asked for"), {"cpu": None, "cuda": None}, **values)
        away = [run for run in plan.runs if run.unavailable]
        assert {
            (run.settings.device, run.settings.inference.precision): run.unavailable for run in away
        } == {
            (
                "cuda",
                precision,
            ): f"inference.precision {precision} is executed by ONNX Runtime, on a CPU only"
            for precision in ("int8", "fp32_onnx")
        }


class TestWhatTheTablesSay:
    def test_the_page_tells_each_precisions_latency_accuracy_and_convolutions(self) -> None:
        plan, records = study_records()
        frame = table(plan, records)
        analysis = analysis_of(plan.study, frame)
        fp32, int8 = analysis.groups
        assert (fp32.label, int8.label) == ("fp32", "int8 in ONNX Runtime")
        assert [level.label for level in int8.levels] == ["1", "8"]
        level = int8.levels[1]
        shown = {entry.key: entry.show(level.resources[entry.key]) for entry in resources(int8)}
        assert (shown["latency_p50_seconds"], shown["latency_p99_seconds"]) == ("8.00", "40.0")
        assert (shown["fp32_accuracy"], shown["int8_convolutions_share"]) == ("50%", "100%")
        assert "int8_convolutions_share" not in fp32.levels[0].resources
        assert level.accuracy == 0.75
        assert level.resources["images_per_second"] == pytest.approx(
            8 * 6 / (4 * 0.008 + 0.02 + 0.04)
        )
        (ratio,) = [ratio for ratio in analysis.ratios if ratio.x == 8]
        assert (ratio.slower, ratio.faster) == ("fp32", "int8")
        assert ratio.ratio.value == pytest.approx(2)


def samples_of(
    seconds: list[float], images: int, weights: str = "ab", int8: int = 0
) -> InferenceSamples:
    batches = [TimedBatch(images=images, warm_up=False, seconds=value) for value in seconds]
    return InferenceSamples(
        started=0.0, seconds=sum(seconds), conversion_seconds=1.0, batches=batches, accuracy=0.75,
        weights_sha256=weights, operators={"QLinearConv": int8} if int8 else {}, memory=Memory(),
    )  # fmt: skip


def record_of(plan: Plan, number: int, samples: InferenceSamples) -> Record:
    record = make_record(plan, number)
    assert record.measurement
    return record.model_copy(
        update={"measurement": record.measurement.model_copy(update={"inference": samples})}
    )


def table_of(samples: InferenceSamples) -> Any:
    plan = plan_of(factors={}, curve=None)
    return table(plan, {plan.runs[0].name: record_of(plan, 0, samples)})


def study_records() -> tuple[Plan, dict[str, Record]]:
    """Two runs a setting: a millisecond an image in int8, two in fp32, and of six batches one is
    far slower."""
    plan = plan_of(replicates=2, contrast="inference.precision")
    records = {}
    for number, run in enumerate(plan.runs):
        size, int8 = run.settings.inference.batch_size, run.settings.inference.precision == "int8"
        usual = size * (0.001 if int8 else 0.002)
        seconds = [usual] * 4 + [2.5 * usual, 5 * usual]
        records[run.name] = record_of(plan, number, samples_of(seconds, size, int8=2 * int8))
    return plan, records
