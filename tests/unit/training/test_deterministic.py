"""`training.deterministic` repeats a training to the last bit, is checked, and says what has no such form."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from study.artifacts.samples import Measurement
from study.base.errors import StudyError
from study.config.settings import Settings, decisive, with_values
from study.training.common import failed, loop_of
from study.training.instruments.in_force import Asked
from study.training.instruments.reference_workload import the_same_for_every_setting
from tests.conftest import tiny_plan
from tests.unit.training.test_loops import make_job, tiny_run

ON = {"deterministic": True}


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = False, True


def trained(folder: Path, loop: str = "torch", **training: Any) -> Measurement:
    """Two epochs, with the algorithms that the settings allow."""
    job = make_job(folder, tiny_run(loop, training=training))
    return loop_of(job.settings)(job)


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_one_seed_gives_the_same_weights_to_the_last_bit_and_another_rate_does_not(tmp_path: Path, loop: str) -> None:
    first, again = trained(tmp_path, loop, **ON), trained(tmp_path, loop, **ON)
    assert first.in_force
    assert (first.in_force.deterministic, first.in_force.cudnn_deterministic) == (True, True)
    assert not first.in_force.cudnn_benchmark
    assert first.trained_sha256 == again.trained_sha256 != first.body_sha256
    assert trained(tmp_path, loop, **ON, learning_rate=1e-4).trained_sha256 != first.trained_sha256


def test_it_is_off_in_the_reference_workload_and_in_a_run_that_does_not_ask_for_it(tmp_path: Path) -> None:
    settings = tiny_run(training=ON).settings
    loop_of(settings)
    with the_same_for_every_setting():
        assert not torch.are_deterministic_algorithms_enabled()
    assert torch.are_deterministic_algorithms_enabled()
    plain = trained(tmp_path).in_force
    assert plain
    assert not plain.deterministic


def test_a_model_that_switches_it_off_is_a_failed_run() -> None:
    settings = tiny_run(training=ON).settings
    loop_of(settings)
    asked = Asked(settings, torch.device("cpu"), 0)
    torch.use_deterministic_algorithms(False)
    with pytest.raises(StudyError, match=r"training\.deterministic: asked for deterministic true, and false"):
        asked.check(None, 0)


def test_an_operation_without_a_deterministic_form_is_named_in_one_line() -> None:
    settings = tiny_run(training=ON).settings
    loop_of(settings)
    with pytest.raises(RuntimeError) as caught:
        torch.zeros(2).put_(torch.tensor([0]), torch.ones(1))
    result = failed(caught.value, settings)
    assert result.message == "training.deterministic: put_ has no deterministic form on cpu"


def test_a_run_that_does_not_ask_for_it_has_the_key_that_it_had_before() -> None:
    plain = tiny_run().settings
    asked = Settings.model_validate(with_values(plain.model_dump(), {"training.deterministic": True}))
    assert "deterministic" not in decisive(plain)["training"]
    assert decisive(asked)["training"]["deterministic"] is True


def test_both_runs_of_a_null_control_have_one_seed_with_and_without_it() -> None:
    factors = {"training.deterministic": [False, True], "training.batch_size": [4, 8]}
    plan = tiny_plan(factors=factors, null_control=True, replicates=2)
    names = {run.name: plan.seed_name(run) for run in plan.runs}
    assert (len(names), len(set(names.values()))) == (16, 4)
