"""The device of a run as torch has it: a TPU, or what takes its place and says so."""

from types import SimpleNamespace

import pytest
import torch

from study.base.devices import TPU_STAND_IN
from study.training.instruments import clock as clocks
from study.training.instruments.device import own_device, torch_device, tpus
from study.training.instruments.machine import describe
from tests.conftest import PlantedClock
from tests.unit.training.test_loops import tiny_run


def test_what_takes_the_place_of_a_tpu_computes_and_the_record_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TPU_STAND_IN, "cpu")
    assert torch_device("tpu") == torch.device("cpu")
    assert tpus() > 0
    assert describe("tpu").device_name.endswith(", in place of a TPU")
    assert not describe("cpu").device_name.endswith("TPU")


def test_work_on_a_tpu_is_not_put_off_and_is_left_to_the_processes_that_train(monkeypatch: pytest.MonkeyPatch) -> None:
    tpu = SimpleNamespace(EagerMode=SimpleNamespace(DEFER_NEVER="never"), eager_mode="fuse")
    monkeypatch.setattr(torch, "tpu", tpu, raising=False)
    monkeypatch.setattr(torch, "device", lambda name, *number: name)  # torch knows no such device here
    settings = tiny_run().settings.model_copy(update={"device": "tpu"})
    assert str(own_device(settings)) == "tpu"
    assert tpu.eager_mode == "never"
    together = settings.training.model_copy(update={"strategy": "ddp"})
    assert str(own_device(settings.model_copy(update={"training": together}))) == "cpu"


def test_each_mark_of_a_device_without_events_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, clock: PlantedClock
) -> None:
    monkeypatch.setattr(clocks, "synchronise", lambda device: clock.pass_by(2.0))
    waiting = clocks.clock_for(torch.device("meta"))
    assert waiting.seconds(waiting.mark(), waiting.mark()) == 2.0
