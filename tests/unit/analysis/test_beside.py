"""Published figures beside ours: matched by their conditions, as ratios, with what differs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.analysis.published.beside import Series, beside
from study.analysis.report.drawings import published_chart
from study.artifacts.published import published_by
from study.config.load import read_selection, read_study
from study.config.study import Study
from study.host.plan.configuration import study_folders
from tests.conftest import study_values
from tests.timings import as_timings

HOMES = {
    "batch-size": "gpu_blog", "cifar10-cnn": "cifar10_project", "mnist-strategies": "mnist_report",
    "lab-device": "gpu_lab", "lab-model-size": "gpu_lab",
}  # fmt: skip


def study_of(**changes: Any) -> Study:
    return Study.model_validate(study_values(curve=None, contrast=None, **changes))


def shown(study: Study, frame: pd.DataFrame, name: str) -> list[Series]:
    """The published series beside the runs of the study of this name."""
    return beside(study, frame, published_by("published", HOMES[name], name))


def row(device: str, size: int, block: int, seconds: float, **columns: Any) -> dict[str, Any]:
    return {
        "run": f"{device}-{size}-r{block}", "outcome": "ok", "session": 1, "block": block, "device": device,
        "training.batch_size": size, "fit_seconds": seconds, "device_name": f"a {device}",
    } | columns  # fmt: skip


def device_frame() -> pd.DataFrame:
    times = (("cpu", 100.0), ("cuda", 20.0))
    return as_timings(row(d, 64, b, t * f) for d, t in times for b, f in enumerate((1.0, 1.1, 0.9)))


def loop_frame(sizes: tuple[int, ...], *ways: tuple[str, str, float]) -> pd.DataFrame:
    """Two runs on a GPU at each size in each way: loop, graph and seconds."""
    return as_timings(
        row("cuda", size, block, seconds, **{"training.loop": loop, "training.cuda_graph": graph})
        for size in sizes
        for loop, graph, seconds in ways
        for block in range(2)
    )


def test_a_published_pair_stands_beside_ours_as_times_and_as_a_ratio_within_blocks() -> None:
    study = study_of(factors={"device": ["cpu", "cuda"]}, training={"batch_size": 64})
    (series,) = [one for one in shown(study, device_frame(), "lab-device") if one.table == "part 1"][:1]
    cpu, gpu = series.rows
    assert (cpu.label, gpu.label) == ("CPU", "GPU")
    assert (cpu.published, gpu.published) == (125.142935, 64.715595)
    assert cpu.ours is not None
    assert cpu.ours.value == pytest.approx(np.exp(np.log([100.0, 110.0, 90.0]).mean()))
    assert gpu.published_ratio == pytest.approx(64.715595 / 125.142935)
    assert gpu.ours_ratio is not None
    assert gpu.ours_ratio.value == pytest.approx(0.2)
    assert gpu.ours_ratio.high == pytest.approx(0.2, rel=0.02)  # the blocks' factors cancel
    assert cpu.ours_ratio is None
    assert series.base == "CPU"


def test_what_differs_is_said_and_drawn_images_make_no_comparable_accuracy() -> None:
    study = study_of(factors={"device": ["cpu", "cuda"]}, training={"batch_size": 64, "epochs": 1})
    frame = device_frame().assign(accuracy=[0.1, 0.9, 0.2, 0.9, 0.9, 0.9])
    found = {one.metric: one for one in shown(study, frame, "cifar10-cnn")}
    told = " ".join(found["fit_time"].differs)
    assert "data: cifar10, 60000 images of 32 px there, 20 drawn images of 32 px here" in told
    assert "epochs: 10 there" in told
    assert "hardware: Intel CPU (Colab) and Tesla T4 there, a cpu and a cuda here" in told
    assert "ratios" in found["fit_time"].comparable
    assert found["test_accuracy"].comparable.startswith("Not comparable")
    assert found["test_accuracy"].rows[0].ours is not None
    assert found["test_accuracy"].rows[0].ours.value == pytest.approx(40)
    assert found["test_accuracy"].rows[0].ours.high is None  # of two or three shares it would lie above 100%


def test_a_factor_that_was_not_published_is_taken_at_the_studys_own_value() -> None:
    study = study_of(
        factors={"training.batch_size": [16, 64], "training.loop": ["fastai", "torch"]},
        training={"loop": "fastai"},
        loader={"kind": "workers"},
    )
    frame = loop_frame((16, 64), ("fastai", "no cuda graph", 10.0), ("torch", "no cuda graph", 1.0))
    for series in shown(study, frame, "batch-size"):
        ours = {line.label: line.ours for line in series.rows if line.ours}
        assert set(ours) == {"16", "64"}
        assert all(estimate.value == pytest.approx(10) for estimate in ours.values())
        assert [line.runs for line in series.rows] == [2, 0, 2, 0, 0]


def test_the_runs_that_do_the_published_work_stand_beside_it_though_the_study_has_switches_and_another_loop() -> None:
    study = study_of(
        factors={
            "training.loop": ["fastai", "torch"],
            "training.cuda_graph": [False, True],
            "training.batch_size": [16, 64, 256],
        },
        only=[
            {"training.loop": "fastai", "training.cuda_graph": False},
            {"training.loop": "torch", "training.cuda_graph": True},
        ],
        training={"loop": "torch"},
    )
    frame = loop_frame((16, 64, 256), ("fastai", "no cuda graph", 10.0), ("torch", "cuda graph", 1.0))
    series, *_ = shown(study, frame, "batch-size")
    assert [line.ours and line.ours.value for line in series.rows][:3] == [pytest.approx(10), None, pytest.approx(10)]
    assert series.ours_with == "fastai, no cuda graph"
    drawn = published_chart(series)
    assert drawn is not None
    assert drawn.title == "Training time relative to batch size 16, fastai, no cuda graph"


def test_a_loop_that_differs_from_the_documents_is_said() -> None:
    study = study_of(factors={"training.batch_size": [16, 64]}, training={"loop": "torch"})
    frame = loop_frame((16, 64), ("torch", "no cuda graph", 1.0))
    series, *_ = shown(study, frame, "batch-size")
    assert "loop: fastai there, torch here" in series.differs


def test_what_was_not_measured_here_is_shown_and_said_to_be_so() -> None:
    study = study_of(factors={"training.batch_size": [4, 8]})
    frame = as_timings([row("cuda", 4, 1, 1.0), row("cuda", 8, 1, 1.0)])
    found = shown(study, frame, "batch-size")
    assert [one.table for one in found] == ["table", "figure"]
    for one in found:
        assert len(one.rows) == 5
        assert all(line.ours is None and line.runs == 0 for line in one.rows)
        assert one.comparable.startswith("Not measured here")
        assert one.differs == ()


def test_as_many_drawn_images_of_that_size_are_told_from_fewer_and_from_other_photographs() -> None:
    def told(**dataset: Any) -> tuple[str, str]:
        study = study_of(factors={"device": ["cpu", "cuda"]}, training={"batch_size": 64}, dataset=dataset)
        found = {one.metric: one for one in shown(study, device_frame().assign(accuracy=0.9), "cifar10-cnn")}
        return found["fit_time"].differs[0], found["test_accuracy"].comparable

    drawn = {"source": "generated", "images": 60000, "image_size": 32}
    assert told(**drawn)[0].endswith("60000 images of 32 px there, the same number of drawn images of that size here")
    assert "3000 drawn images of 32 px here" in told(**drawn | {"images": 3000})[0]
    data, accuracy = told(source="folder", path="photos", image_size=64)
    assert data == "data: cifar10, 60000 images of 32 px there, folder, 64 px here"
    assert accuracy.startswith("Not comparable")
    data, accuracy = told(source="cifar10", image_size=32)
    assert not data.startswith("data")
    assert accuracy.startswith("Comparable")


def test_a_published_setting_that_the_study_does_not_vary_is_matched_by_none_but_its_own() -> None:
    study = study_of(
        factors={"training.strategy": ["ddp", "ddp_two_nodes"]},
        training={"batch_size": 1000, "loop": "torch", "epochs": 20, "freeze_epochs": 0},
        loader={"kind": "workers"},
        device="cuda",
    )
    rows = [row("cuda", 1000, 1, 4.0, **{"training.strategy": "ddp_two_nodes", "replicas": 2})]
    frame = as_timings(rows).assign(train_seconds=4.0, accuracy=0.9)
    found = {one.metric: one for one in shown(study, frame, "mnist-strategies")}
    ours = {line.label for line in found["fit_time"].rows if line.ours}
    assert "GPU, Tesla T4, batch size 1000, ddp two nodes, torch" in ours
    assert not any("batch size 64" in label or label.startswith("CPU") for label in ours)
    assert "processes: 2 here, that share each batch" in found["fit_time"].differs
    assert found["test_accuracy"].base is None
    assert all(line.published_ratio is None and line.ours_ratio is None for line in found["test_accuracy"].rows)


def test_parameters_follow_from_the_network_wherever_it_trained_in_the_unit_that_the_document_chose() -> None:
    counts = {"lab2_small": 30_036.0, "lab2_large": 6_693_546.0}
    study = study_of(factors={"device": ["cpu"], "model.name": list(counts)})
    frame = as_timings(
        row("cpu", 4, 1, 5.0, **{"model.name": name, "parameters": count}) for name, count in counts.items()
    )
    (series,) = [one for one in shown(study, frame, "lab-model-size") if one.metric == "parameters"]
    assert [line.runs for line in series.rows] == [1, 0, 1]
    small, _, large = series.rows
    assert series.words == "parameters (million)"
    assert small.ours is not None
    assert small.published == 0.03
    assert small.ours.value == pytest.approx(0.030036)
    assert large.ours_ratio is not None
    assert large.ours_ratio.value == pytest.approx(6_693_546 / 30_036)


def test_a_time_of_fit_stands_beside_fastais_and_one_of_a_custom_loop_beside_ours() -> None:
    study = read_study("mnist-strategies", study_folders(), read_selection({"studies": ["mnist-strategies"]}))
    frame = as_timings(
        row("cuda", 1000, 1, seconds, train_seconds=seconds, **{"training.loop": loop, "training.strategy": strategy})
        for loop, strategy, seconds in (("fastai", "ddp", 9.0), ("torch", "ddp", 5.0), ("torch", "ddp_two_nodes", 4.0))
    )
    (series,) = [one for one in shown(study, frame, "mnist-strategies") if one.metric == "fit_time"]
    ours = {line.label: line.ours.value for line in series.rows if line.ours}
    assert ours["GPU, A100, batch size 1000, ddp, fastai"] == pytest.approx(9)
    assert ours["GPU, Tesla T4, batch size 1000, ddp two nodes, torch"] == pytest.approx(4)
    assert "GPU, A100, batch size 1000, ddp two nodes, fastai" not in ours
    assert series.notes == ("batch size is per replica",)
