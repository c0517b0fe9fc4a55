"""Published figures beside ours: matched by their conditions, as ratios, with what differs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.beside import beside, conditions_of, varied
from study.config import Study
from study.load import read_selection, read_study
from study.published import read_published
from tests.conftest import study_values

STUDIES = Path(__file__).parents[2] / "config" / "studies"


def study_of(published: str, **changes: Any) -> Study:
    return Study.model_validate(study_values(published=published, curve=None, contrast=None, **changes))


def row(device: str, size: int, block: int, seconds: float, **columns: Any) -> dict[str, Any]:
    return {
        "run": f"{device}-{size}-r{block}", "outcome": "ok", "session": 1, "block": block, "device": device,
        "training.batch_size": size, "fit_seconds": seconds, "device_name": f"a {device}",
    } | columns  # fmt: skip


def device_frame() -> pd.DataFrame:
    return pd.DataFrame(
        [row(d, 64, b, t * f) for d, t in (("cpu", 100.0), ("cuda", 20.0)) for b, f in enumerate((1.0, 1.1, 0.9))]
    )


def test_a_published_pair_stands_beside_ours_as_times_and_as_a_ratio_within_blocks() -> None:
    study = study_of("lab-device", factors={"device": ["cpu", "cuda"]}, training={"batch_size": 64})
    (series,) = [one for one in beside(study, device_frame(), read_published()) if one.table == "part 1"][:1]
    cpu, gpu = series.rows
    assert (cpu.label, gpu.label) == ("CPU", "GPU")
    assert (cpu.published, gpu.published) == (125.142935, 64.715595)
    assert cpu.ours is not None
    assert cpu.ours.value == pytest.approx(np.exp(np.log([100.0, 110.0, 90.0]).mean()))
    assert gpu.published_ratio == pytest.approx(64.715595 / 125.142935)
    assert gpu.ours_ratio is not None
    assert gpu.ours_ratio.value == pytest.approx(0.2)
    assert gpu.ours_ratio.high == pytest.approx(0.2)  # the blocks' factors cancel
    assert cpu.ours_ratio is None
    assert series.base == "CPU"


def test_what_differs_is_said_and_drawn_images_make_no_comparable_accuracy() -> None:
    study = study_of("cifar10-cnn", factors={"device": ["cpu", "cuda"]}, training={"batch_size": 64, "epochs": 1})
    frame = device_frame().assign(accuracy=0.9)
    found = {one.metric: one for one in beside(study, frame, read_published())}
    told = " ".join(found["fit_time"].differs)
    assert "data: cifar10 there, drawn images of the same shape here" in told
    assert "epochs: 10 there" in told
    assert "hardware: Intel CPU (Colab) and Tesla T4 there, a cpu and a cuda here" in told
    assert "ratios" in found["fit_time"].comparable
    assert found["test_accuracy"].comparable.startswith("Not comparable")
    assert found["test_accuracy"].rows[0].ours is not None
    assert found["test_accuracy"].rows[0].ours.value == pytest.approx(90)


def test_a_factor_that_was_not_published_is_taken_at_the_studys_own_value() -> None:
    study = study_of(
        "batch-size",
        factors={"training.batch_size": [16, 64], "training.loop": ["fastai", "torch"]},
        training={"loop": "fastai"},
        loader={"kind": "workers"},
    )
    frame = pd.DataFrame(
        [
            row("cuda", size, block, 10.0 if loop == "fastai" else 1.0, **{"training.loop": loop})
            for size in (16, 64)
            for loop in ("fastai", "torch")
            for block in range(2)
        ]
    )
    for series in beside(study, frame, read_published()):
        ours = {line.label: line.ours for line in series.rows if line.ours}
        assert set(ours) == {"16", "64"}
        assert all(estimate.value == pytest.approx(10) for estimate in ours.values())
        assert [line.runs for line in series.rows] == [2, 0, 2, 0, 0]


def test_a_study_that_measured_none_of_the_published_settings_shows_none() -> None:
    study = study_of("batch-size", factors={"training.batch_size": [4, 8]})
    frame = pd.DataFrame([row("cuda", 4, 1, 1.0), row("cuda", 8, 1, 1.0)])
    assert beside(study, frame, read_published()) == []
    assert varied([]) == []


def test_published_conditions_are_keys_of_a_study() -> None:
    frame = read_published()
    strategies = frame[frame["study"] == "mnist-strategies"].set_index("strategy", drop=False)
    multi = conditions_of(strategies.loc["multi_worker+custom_loop"].iloc[0])
    assert multi["training.strategy"] == "ddp_two_nodes"
    assert multi["training.loop"] == "torch"
    amp = conditions_of(frame[frame["precision"] == "fp16_amp"].iloc[0])
    assert amp["training.precision"] == "fp16"
    assert "training.batch_size" not in amp


def test_ours_is_told_in_the_unit_that_the_document_chose() -> None:
    study = study_of("lab-model-size", factors={"model.name": ["lab2_small", "lab2_large"]}, device="cuda")
    frame = pd.DataFrame(
        [
            row("cuda", 64, 1, 5.0, **{"model.name": name, "parameters": float(count)})
            for name, count in (("lab2_small", 30_036), ("lab2_large", 6_693_546))
        ]
    )
    (series,) = [one for one in beside(study, frame, read_published()) if one.metric == "parameters"]
    small, _, large = series.rows
    assert series.words == "parameters (million)"
    assert small.ours is not None
    assert small.published == 0.03
    assert small.ours.value == pytest.approx(0.030036)
    assert large.ours_ratio is not None
    assert large.ours_ratio.value == pytest.approx(6_693_546 / 30_036)


def test_a_time_of_fit_stands_beside_fastais_and_one_of_a_custom_loop_beside_ours() -> None:
    study = read_study("mnist-strategies", STUDIES, read_selection({"studies": ["mnist-strategies"]}))
    frame = pd.DataFrame(
        [
            row("cuda", 1000, 1, seconds, **{"training.loop": loop, "training.strategy": strategy})
            for loop, strategy, seconds in (
                ("fastai", "ddp", 9.0),
                ("torch", "ddp", 5.0),
                ("torch", "ddp_two_nodes", 4.0),
            )
        ]
    ).assign(train_seconds=lambda rows: rows["fit_seconds"])
    (series,) = [one for one in beside(study, frame, read_published()) if one.metric == "fit_time"]
    ours = {line.label: line.ours.value for line in series.rows if line.ours}
    assert ours["GPU, A100, batch size 1000, mirrored"] == pytest.approx(9)
    assert ours["GPU, Tesla T4, batch size 1000, multi worker, custom loop"] == pytest.approx(4)
    assert "GPU, A100, batch size 1000, multi worker" not in ours
    assert series.notes == ("batch size is per replica",)
