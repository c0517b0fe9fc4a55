"""A study of a TPU from its start to its page, on a CPU that takes the TPU's place."""

import pytest

from study.base.devices import TPU_STAND_IN
from tests.workflow.conftest import Checkout

pytestmark = pytest.mark.thorough


def test_a_study_of_a_tpu_is_measured_by_one_process_and_by_two_and_its_page_says_what_it_ran_on(
    checkout: Checkout,
) -> None:
    factors = {"device": ["tpu"], "training.strategy": ["single", "ddp"]}
    training = {"loop": "torch", "freeze_epochs": 0, "epochs": 1, "batch_size": 4, "processes": 2}
    checkout.study("tiny", factors=factors, training=training, curve=None)
    checkout.good()
    assert checkout.records() == {}
    checkout.variables[TPU_STAND_IN] = "cpu"
    checkout.good()
    records = checkout.measured().values()
    assert {(one.outcome, one.settings.device, one.started_as) for one in records} == {("ok", "tpu", "fresh")}
    assert sorted(len(one.measurement.replicas) for one in records if one.measurement) == [0, 2]
    assert "in place of a TPU" in checkout.page()
