"""A machine that others load while a study runs: the yardstick shows it, and no difference is made up from it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median

from study.analysis.stats.analysis import Analysis, analyse
from study.analysis.stats.findings import BusyMachine, MachineChanged, NullControl
from study.analysis.table import rows
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import Record
from study.config.study import Study
from study.host.engine.place import Place
from study.host.plan.make import make_plan
from study.host.steps import dataset, launch
from study.training.models.pretrained import decide
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
    dataset.make(results / plan.name / "plan.json", run.dataset, results)
    decision = decide(run.settings.model.name, "none", run.settings.seed, results / "weights")
    path = results / plan.name / "weights" / f"{run.weights}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(decision.model_dump_json(), encoding="utf-8")


def measure(results: Path) -> tuple[Analysis, dict[str, Record]]:
    """The null control in four blocks, two of them under load."""
    values = study_values(factors={}, curve=None, null_control=True, contrast="control", replicates=4)
    study = Study.model_validate(values | {"dataset": {"source": "generated", "images": 60, "image_size": 40}})
    plan = make_plan("loaded", study, Place("none", "asked for"), HERE)
    make(plan, results)
    records = {}
    for run in plan.runs:
        with load() if run.block in LOADED_BLOCKS else nullcontext():
            records[run.name] = launch.launch(plan, run, results, 1, results / "run.log", f"run {run.position}")
    assert {record.outcome for record in records.values()} == {"ok"}
    return analyse(plan.study, rows.table(plan, records)), records


def looks_real(found: Analysis) -> bool:
    """Whether the report would call the difference of the two equal configurations one."""
    (ratio,) = found.ratios
    told = ratio.adjusted or ratio.ratio
    assert told.low is not None
    assert told.high is not None
    return not told.low <= 1 <= told.high


def test_load_from_outside_in_half_of_the_blocks_is_seen_and_makes_no_difference(tmp_path: Path) -> None:
    """Nothing differs, so nothing may be reported; the machine's change must be."""
    found, records = measure(tmp_path / "once")
    calm = [r.yardstick.seconds for r in records.values() if r.yardstick and r.block not in LOADED_BLOCKS]
    loaded = [r.yardstick.seconds for r in records.values() if r.yardstick and r.block in LOADED_BLOCKS]
    assert median(loaded) > 1.2 * median(calm)
    assert any(isinstance(caveat, MachineChanged) for caveat in found.warnings)
    assert any(isinstance(caveat, BusyMachine) for caveat in found.warnings)
    assert isinstance(found.answer[-1], NullControl)
    # One 95% interval in twenty leaves out the truth; two in a row are one in four hundred.
    assert not looks_real(found) or not looks_real(measure(tmp_path / "again")[0])
