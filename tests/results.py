"""Results folders with planted records, for tests that compare, pack and open them."""

import shutil
from collections.abc import Callable
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.machine import Machine
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import Record
from tests.examples import EXAMPLE
from tests.unit.artifacts.test_records import make_record


def result(
    folder: Path, plan: Plan, change: Callable[[Record, int], Record] = lambda record, _: record
) -> Path:
    """A results folder with a record for every run of the plan, in a start for each block."""
    files = Results(folder)
    write_plans([plan], folder)
    for number, run in enumerate(plan.runs):
        path = files.record(plan.name, run.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        record = change(make_record(plan, number, session=run.block), run.block)
        path.write_text(record.model_dump_json(indent=1), encoding="utf-8")
    return folder


def slower(factor: float, machine: Machine | None = None) -> Callable[[Record, int], Record]:
    """Records whose times are longer by a factor; those of a start share its state."""

    def change(record: Record, block: int) -> Record:
        assert record.measurement
        seconds = factor * (1 + 0.002 * block) * record.measurement.fit_seconds
        measured = record.measurement.model_copy(update={"fit_seconds": seconds})
        return record.model_copy(
            update={"measurement": measured, "machine": machine or record.machine}
        )

    return change


def of_devices(folder: Path) -> list[Path]:
    """The runs of the example on the CPU as one result, and those on the GPU as another."""
    folders = [folder / "a", folder / "b"]
    for one, other in zip(folders, ("cuda", "cpu"), strict=True):
        shutil.copytree(EXAMPLE / "photographs-speedup", one / "photographs-speedup")
        for path in (one / "photographs-speedup/records").rglob(f"*-{other}-*.json"):
            path.unlink()
    return folders
