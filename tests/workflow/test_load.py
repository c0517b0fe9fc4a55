"""A machine that others load while a study runs: the yardstick shows it, and no difference is made up from it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from study import launch, timings
from study.config import Study
from study.data import step
from study.models import decide
from study.plan import Place, Plan, make_plan, write_plans
from study.stats.analysis import analyse
from tests.conftest import HERE, study_values

LOADED_BLOCKS = (2, 3)


@contextmanager
def load() -> Iterator[None]:
    """A process more than there are CPUs, which compute and never rest."""
    program = "while True: sum(range(10_000))"
    others = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(1 + (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def make(plan: Plan, results: Path) -> None:
    """What the dataset and the weights step leave."""
    write_plans([plan], results)
    run = plan.runs[0]
    step.make(results / plan.name / "plan.json", run.dataset, results)
    decision = decide(run.settings.model.name, "none", run.settings.seed, results / "weights")
    path = results / plan.name / "weights" / f"{run.weights}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(decision.model_dump_json(), encoding="utf-8")


def test_load_from_outside_in_half_of_the_blocks_is_seen_and_explains_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The null control under load: nothing differs, so nothing may be reported; the machine's change must be."""
    values = study_values(factors={}, curve=None, null_control=True, contrast="control", replicates=4)
    study = Study.model_validate(values | {"dataset": {"source": "generated", "images": 60, "image_size": 40}})
    plan = make_plan("loaded", study, Place("none", "asked for"), HERE)
    make(plan, tmp_path)
    records = {}
    for run in plan.runs:
        arguments = (plan, run, tmp_path, 1, tmp_path / "run.log", f"run {run.position} of {len(plan.runs)}")
        if run.block in LOADED_BLOCKS:
            with load():
                records[run.name] = launch.launch(*arguments)
        else:
            records[run.name] = launch.launch(*arguments)
    assert {record.outcome for record in records.values()} == {"ok"}
    found = analyse(plan.study, timings.table(plan, records))

    calm = [r.yardstick.seconds for r in records.values() if r.yardstick and r.block not in LOADED_BLOCKS]
    loaded = [r.yardstick.seconds for r in records.values() if r.yardstick and r.block in LOADED_BLOCKS]
    assert min(loaded) > 1.3 * max(calm)
    assert any(text.startswith("The machine itself changed by") for text in found.warnings)
    assert any(text.startswith("The machine was busy with other work") for text in found.warnings)
    (ratio,) = found.ratios
    told = ratio.adjusted or ratio.ratio
    assert told.low is not None
    assert told.high is not None
    assert told.low <= 1 <= told.high
    assert found.answer[-1].startswith("Null control: each configuration was run twice")


def test_load_in_the_runs_of_one_level_alone_is_not_reported_as_its_effect(tmp_path: Path) -> None:
    """What blocks cannot take out: the load meets one level more often. The yardstick explains it."""
    values = study_values(factors={}, curve=None, null_control=True, contrast="control", replicates=4)
    study = Study.model_validate(values | {"dataset": {"source": "generated", "images": 60, "image_size": 40}})
    plan = make_plan("loaded", study, Place("none", "asked for"), HERE)
    make(plan, tmp_path)
    records = {}
    for run in plan.runs:
        arguments = (plan, run, tmp_path, 1, tmp_path / "run.log", f"run {run.position} of {len(plan.runs)}")
        if run.settings.control == "first" and run.block != 1:
            with load():
                records[run.name] = launch.launch(*arguments)
        else:
            records[run.name] = launch.launch(*arguments)
    found = analyse(plan.study, timings.table(plan, records))
    (ratio,) = found.ratios
    assert ratio.ratio.value > 1.3
    assert ratio.adjusted is not None
    assert ratio.adjusted.low is not None
    assert ratio.adjusted.low <= 1
