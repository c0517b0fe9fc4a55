"""A race of settings, as a user starts it."""

import pytest
import yaml

from study.artifacts.plan import Plan
from study_tune.race import FIRST
from tests.workflow.conftest import copy_checkout

pytestmark = pytest.mark.thorough

LOADED = {"kind": "workers", "workers": 1}
PLAIN = {"loop": "torch", "freeze_epochs": 0, "epochs": 2, "batch_size": 10, "schedule": "cosine"}
"""Stock fastai cannot follow this schedule: the study's own settings are what the others are
compared with."""


@pytest.mark.timeout(400)
def test_a_race_ends_with_a_verdict_a_report_and_the_study_that_repeats_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    checkout = copy_checkout(tmp_path_factory.mktemp("tune") / "a copy")
    images = {"source": "generated", "images": 250, "image_size": 32}
    checkout.study(
        "tiny",
        dataset=images,
        loader=LOADED,
        training=PLAIN,
        curve=None,
        factors={"device": ["cpu"]},
    )
    config = checkout.root / "config" / "config.yaml"
    values = yaml.safe_load(config.read_text(encoding="utf-8")) | {
        "container": "none",
        "warm_up_run": False,
    }
    config.write_text(yaml.safe_dump(values | {"quiet_wait_seconds": 0}), encoding="utf-8")
    done = checkout.python("study", "tune", "tiny", "--minutes", "0.5")
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert said[-1] == "to repeat it: config/studies/tiny-tuned.yaml"
    assert said[-2].startswith("tried: ")
    assert any("the study as it is" in line for line in said)
    plan = Plan.read(checkout.root / "results/tiny-tuned/plan.json")
    assert {run.settings.training.schedule for run in plan.runs} == {"cosine"}
    made = {path.name for path in (checkout.root / "results/tiny-tuned/records").glob("*.json")}
    # the time of a busy machine may end before the last blocks
    assert made <= {run.file for run in plan.runs}
    assert len(made) >= FIRST
    assert "Tiny, tuned" in (checkout.root / "results/report.html").read_text(encoding="utf-8")
    again = checkout.python("study", "tune", "tiny")
    assert again.returncode == 1
    assert (
        again.stderr
        == "error: tiny-tuned.yaml is there already: remove it to race again, or start it to "
        "repeat its runs\n"
    )
