from itertools import pairwise
from typing import Any

import pytest

from study.base.errors import StudyError
from study.config.settings import Settings, with_values
from study.config.study import Study
from study_tune.space import Space, space_of
from tests.conftest import study_values


def space(device: Any = "cpu", train_images: int = 800, **changes: Any) -> Space:
    return space_of(study(**changes), device, train_images)


def study(**changes: Any) -> Study:
    values: dict[str, Any] = {
        "model": {"name": "resnet18", "weights": "none"},
        "loader": {"kind": "workers"},
        "curve": None,
    }
    values |= {"training": {"batch_size": 64, "freeze_epochs": 0}, "factors": {"device": ["cpu"]}}
    return Study.model_validate(study_values(**(values | changes)))


def test_every_setting_that_is_offered_can_be_run() -> None:
    found = space("cuda")
    base = {
        key: value for key, value in study().model_dump().items() if key in Settings.model_fields
    }
    for levels in (found.baseline, *found.others):
        Settings.of_values(with_values(base, dict(levels)), "offered")
    assert len({repr(sorted(levels.items())) for levels in found.others}) == len(found.others) > 100


def test_stock_fastai_is_the_baseline_and_the_plain_loop_and_everything_on_come_first() -> None:
    found = space()
    assert found.baseline["training.loop"] == "fastai"
    plain, everything = found.others[:2]
    assert plain == {**found.baseline, "training.loop": "torch"}
    assert everything["training.precision"] == "bf16"
    assert everything["training.memory_format"] == "channels_last"
    assert everything["loader.kind"] == "threads"
    assert everything["training.batch_size"] == 64


def test_where_fastai_cannot_train_it_the_studys_own_settings_are_the_baseline() -> None:
    found = space(training={"batch_size": 64, "freeze_epochs": 0, "schedule": "cosine"})
    assert found.baseline["training.loop"] == "torch"
    assert all(one["training.loop"] == "torch" for one in found.others)


def test_no_batch_is_larger_than_the_training_set_and_a_studys_own_levels_are_kept() -> None:
    assert {one["training.batch_size"] for one in space(train_images=130).others} == {32, 64, 128}
    own = space(factors={"device": ["cpu"], "training.batch_size": [10, 20]})
    assert {one["training.batch_size"] for one in own.others} == {10, 20}


def test_a_cpu_is_offered_nothing_that_only_a_gpu_has() -> None:
    assert not {"training.cuda_graph", "training.cudnn_benchmark"} & set(space("cpu").factors)
    assert {"training.cuda_graph", "training.cudnn_benchmark"} <= set(space("cuda").factors)


def test_images_that_are_decoded_before_the_clock_starts_are_compared_with_none_that_are_not() -> (
    None
):
    found = space(loader={"kind": "device"})
    assert {one["loader.kind"] for one in found.others} == {"device"}


def test_the_order_of_trial_is_seeded_and_what_trains_nothing_is_refused() -> None:
    assert space().others == space().others
    assert any(
        first != second for first, second in pairwise([space(seed=seed).others for seed in (1, 2)])
    )
    with pytest.raises(StudyError, match="command: it is not allowed"):
        space(command="python -V")
