"""A machine that others load while a study runs: the reference workload shows it, and no difference is made up from
it."""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from study.analysis.answers.null_control import NullControl
from study.analysis.caveats.machine import BUSY_LIMIT, Busy, MachineChanged
from study.analysis.table import rows
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import Record
from study.artifacts.run import Run
from study.artifacts.session import Session
from study.config.study import Study
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan
from study.host.steps import launch
from study.host.steps.prepare import make_dataset
from study.training.models.pretrained import decide
from tests.conftest import HERE, study_values
from tests.unit.analysis.planted import analysis_of
from tests.workflow.conftest import neighbours

pytestmark = pytest.mark.thorough

LOADED_BLOCKS = (2, 3)
RESTLESS = "while True: sum(range(10_000))"
CHANCE = {"first": (1.00, 1.02, 0.99, 1.01), "second": (1.02, 1.00, 1.01, 0.99)}
"""Of each configuration in each block."""


def make(plan: Plan, results: Path) -> None:
    """What the dataset and the weights step leave."""
    write_plans([plan], results)
    run = plan.runs[0]
    make_dataset(plan, run.dataset, results)
    decision = decide(run.settings.model.name, "none", run.settings.seed, results / "weights")
    path = results / plan.name / "weights" / f"{run.weights}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(decision.model_dump_json(), encoding="utf-8")


def measure(plan: Plan, results: Path) -> dict[bool, Record]:
    """A real run on the machine as it is, and one under load."""
    make(plan, results)
    found: dict[bool, Record] = {}
    for run in plan.runs[:2]:
        loaded = bool(found)
        with neighbours(RESTLESS, 1 + (os.cpu_count() or 1)) if loaded else nullcontext():
            found[loaded] = launch.launch(plan, run, results, Session(), results / "run.log", f"run {run.position}")
    assert {record.outcome for record in found.values()} == {"ok"}
    return found


def planted(run: Run, measured: dict[bool, Record]) -> Record:
    """What was measured, as of ``run`` and with times of its place: on a machine half as fast in the loaded blocks, and
    1% or 2% of chance."""
    record = measured[run.block in LOADED_BLOCKS]
    assert record.measurement
    assert record.reference_workload
    machine = 2.0 if run.block in LOADED_BLOCKS else 1.0
    seconds = machine * CHANCE[str(run.setting.levels["control"])][run.block - 1]
    repetitions = [0.004 * machine] * len(record.reference_workload.before)
    return record.model_copy(
        update={
            "run": run.name,
            "block": run.block,
            "position": run.position,
            "setting": run.setting,
            "warmed_up": True,
            "reference_workload": record.reference_workload.model_copy(
                update={"before": repetitions, "after": repetitions}
            ),
            "measurement": record.measurement.model_copy(update={"fit_seconds": 10 * seconds}),
        }
    )


def test_load_from_outside_in_half_of_the_blocks_is_seen_and_makes_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing differs, so nothing may be reported; the machine's change must be. The load is real and seen by itself;
    how much slower it makes the runs is planted, for that is the machine's own affair."""
    monkeypatch.delenv("STUDY_INSTRUMENTS")
    values = study_values(factors={}, curve=None, null_control=True, contrast="control", replicates=4)
    plan = make_plan("loaded", Study.model_validate(values), EngineChoice("none", "asked for"), HERE)
    measured = measure(plan, tmp_path / "results")
    assert all(record.reference_workload and record.reference_workload.seconds > 0 for record in measured.values())
    assert (measured[True].cpu_percent_before or 0) >= BUSY_LIMIT
    found = analysis_of(plan.study, rows.table(plan, {run.name: planted(run, measured) for run in plan.runs}))
    (changed,) = (caveat for caveat in found.warnings if isinstance(caveat, MachineChanged))
    assert changed.slowest_seconds / changed.fastest_seconds == pytest.approx(2.0, rel=0.01)
    assert any(isinstance(caveat, Busy) for caveat in found.warnings)
    assert isinstance(found.answers[-1], NullControl)
    (ratio,) = found.ratios
    for told in filter(None, (ratio.ratio, ratio.adjusted)):
        assert told.low is not None
        assert told.high is not None
        assert told.low <= 1 <= told.high
