"""The rule of the learning rate reaches the optimizer of both loops."""

from typing import Any

import pytest

from study.training.loops.fastai import loop as fastai_loop
from study.training.loops.schedule import stages
from tests.conftest import SMALL_NET, TRANSFER, tiny_plan

RULE = {"learning_rate": 0.01, "learning_rate_rule": "linear", "reference_batch_size": 16, "batch_size": 4}
SCALED = 0.0025


def settings_of(model: str, loop: str, **training: Any) -> Any:
    """Settings whose batch is a quarter of the reference."""
    values = TRANSFER if model == "resnet18" else {}
    given = {"loop": loop, "freeze_epochs": 0, "epochs": 1} | RULE | training
    changes = values | {"training": given, "loader": {"kind": "workers"}, "factors": {}, "curve": None}
    return tiny_plan(**changes).runs[0].settings


@pytest.mark.parametrize("schedule", ["one_cycle", "constant", "cosine"])
def test_our_schedule_starts_from_the_rate_of_the_rule(schedule: str) -> None:
    (whole,) = stages(settings_of(SMALL_NET["name"], "torch", schedule=schedule), 1)
    assert max(whole.rates(part / 100)[0] for part in range(100)) == pytest.approx(SCALED)


def test_fine_tuning_starts_from_the_rate_of_the_rule() -> None:
    frozen, _ = stages(settings_of("resnet18", "torch", freeze_epochs=1), 3)
    assert max(frozen.rates(part / 100)[-1] for part in range(100)) == pytest.approx(SCALED)


class Asked:
    """A learner that notes the rate that it is asked for."""

    rate = 0.0

    def fine_tune(self, epochs: int, base_lr: float, freeze_epochs: int) -> None:
        self.rate = base_lr

    def fit(self, epochs: int, rate: float) -> None:
        self.rate = rate

    fit_one_cycle = fit


@pytest.mark.parametrize(("model", "schedule"), [("resnet18", "one_cycle"), ("net", "one_cycle"), ("net", "constant")])
def test_fastai_is_asked_for_the_rate_of_the_rule(model: str, schedule: str) -> None:
    learner = Asked()
    fastai_loop.fit(learner, settings_of(model, "fastai", schedule=schedule))
    assert learner.rate == pytest.approx(SCALED)
