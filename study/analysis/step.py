"""The step ``fit``: a plan and its ``timings.csv`` in, ``fit.json`` out."""

from pathlib import Path

from study.analysis.analysis import analyse
from study.analysis.table.files import read_timings, read_warm_up_runs
from study.artifacts.checked import read_records
from study.artifacts.plan import read_plan
from study.base.files import write_whole


def write_fit(plan: Path, timings: Path, output: Path) -> None:
    """Write the analysis of the study of ``plan``. The file gets a new time even if nothing changed."""
    planned = read_plan(plan)
    records = read_records(planned, plan.parent / "records", steps=False)
    found = analyse(planned, read_timings(timings, planned), records, read_warm_up_runs(plan.parent.parent))
    write_whole(output, found.model_dump_json(indent=1))
