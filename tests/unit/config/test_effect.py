"""A key or a factor without effect where it stands is refused before any run, in a line that says
what gives it one."""

from pathlib import Path
from typing import Any

import pytest

from study.base.errors import StudyError
from study.config.settings import KEYS, setting_keys
from study.host.engine.engine_choice import EngineChoice
from tests.conftest import plan_at, study_values, tiny_plan
from tests.unit.config.test_config import plan_of

WORKERS = {"loader.kind": "workers"}
TWO_WORKERS = WORKERS | {"loader.workers": 2}
BY_ITSELF = {"training.strategy": "ddp", "training.processes": 1}
DETERMINISTIC = {"training.deterministic": True}
CIFAR = {"dataset.source": "cifar10", "model.name": "resnet18", "training.batch_size": 4}
IN_VAIN: list[tuple[str, dict[str, Any]]] = [
    ("loader.workers", {"loader.workers": [0, 2]}),
    ("loader.workers", {"loader.workers": 99}),
    ("loader.prefetch_factor", {"loader.prefetch_factor": [2, 4]}),
    ("loader.persistent_workers", TWO_WORKERS | {"loader.persistent_workers": [False, True]}),
    ("loader.pin_memory", WORKERS | {"loader.pin_memory": [False, True]}),
    ("loader.decoder", WORKERS | {"loader.decoder": ["pillow", "torchcodec"]}),
    ("training.processes", {"training.processes": [1, 2]}),
    ("training.batch_size_is", {"training.batch_size_is": "replica"}),
    ("training.batch_size_is", BY_ITSELF | {"training.batch_size_is": ["global", "replica"]}),
    ("training.reference_batch_size", {"training.reference_batch_size": 64}),
    ("training.validation", {"training.validation": "end"}),
    ("training.cudnn_benchmark", {"training.cudnn_benchmark": [False, True]}),
    ("training.cudnn_benchmark", DETERMINISTIC | {"training.cudnn_benchmark": False}),
    ("dataset.path", {"dataset.path": "photos"}),
    ("dataset.images", CIFAR | {"dataset.images": [100, 200]}),
    ("dataset.seed", CIFAR | {"dataset.seed": 7}),
    ("dataset.valid_fraction", CIFAR | {"dataset.valid_fraction": 0.5}),
]


def refusal(folder: Path, values: dict[str, Any], **config: Any) -> StudyError:
    """The error of a start."""
    with pytest.raises(StudyError) as caught:
        plan_of(folder, values, **config)
    return caught.value


@pytest.mark.parametrize(("key", "changes"), IN_VAIN)
def test_what_a_start_asks_for_in_vain_is_one_line(
    tmp_path: Path, key: str, changes: dict[str, Any]
) -> None:
    values = study_values(
        curve=None, dataset={"source": "generated", "images": 40, "image_size": 32}
    )
    error = refusal(tmp_path, values, overrides=changes)
    assert error.key == key
    cures = [idle.cure for idle in KEYS[key].idle]
    assert error.why in [f"it has no effect there, and has one with {cure}" for cure in cures]
    assert "with " in error.context


def test_a_key_of_the_file_without_effect_is_refused_unless_a_start_took_the_effect_away(
    tmp_path: Path,
) -> None:
    loader = {"kind": "workers", "workers": 2}
    values = study_values(loader=loader)
    assert plan_of(tmp_path, values, overrides={"loader.kind": "device"}).study.loader.workers == 2
    error = refusal(tmp_path, values | {"loader": loader | {"kind": "device"}})
    assert (error.key, error.value) == ("loader.workers", 2)
    assert error.context == "with loader.kind device"


def test_a_key_that_has_an_effect_at_one_level_of_a_factor_stays(tmp_path: Path) -> None:
    overrides: dict[str, Any] = {"loader.kind": ["workers", "device"], "loader.workers": 2}
    assert len(plan_of(tmp_path, study_values(), overrides=overrides).runs) == 4
    both = overrides | {"loader.workers": [0, 2]}
    error = refusal(tmp_path, study_values(), overrides=both)
    assert (error.key, error.value) == ("loader.workers", [0, 2])
    assert error.context == "with loader.kind device"
    only = [{"loader.kind": "workers"}, {"loader.kind": "device", "loader.workers": 0}]
    assert len(plan_of(tmp_path, study_values(only=only), overrides=both).runs) == 6


def test_how_a_process_starts_is_no_factor_in_a_container() -> None:
    factors = {"device": ["cpu"], "process": ["forked", "fresh"]}
    assert len(tiny_plan(factors=factors, curve=None).runs) == 2
    told = r"process: .* is not allowed with docker: it has no effect there"
    with pytest.raises(StudyError, match=told):
        plan_at(EngineChoice("docker", "asked for"), factors=factors, curve=None)


def test_every_row_names_keys_of_a_run() -> None:
    for known in KEYS.values():
        for idle in known.idle:
            assert set(idle.when) <= {*setting_keys(), "command"}


def test_a_start_that_leaves_a_device_out_leaves_its_settings_out(tmp_path: Path) -> None:
    only = [
        {"device": "cpu", "training.batch_size": 4},
        {"device": "cuda", "training.batch_size": 8},
    ]
    factors = {"device": ["cpu", "cuda"], "training.batch_size": [4, 8]}
    values = study_values(only=only, factors=factors)
    (run,) = plan_of(tmp_path, values, devices=["cpu"]).runs
    assert (run.settings.device, run.settings.training.batch_size) == ("cpu", 4)
    error = refusal(tmp_path, values | {"only": only[1:]}, devices=["cpu"])
    assert (error.key, error.value) == ("only.device", "cuda")
