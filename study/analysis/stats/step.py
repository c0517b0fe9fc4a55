"""The step ``fit``: a plan and its ``timings.csv`` in, ``fit.json`` out."""

from pathlib import Path

from study.analysis.stats.analysis import analyse
from study.analysis.table.files import read_csv
from study.artifacts.plan import read_plan
from study.base.files import write_whole


def write_fit(plan: Path, timings: Path, output: Path) -> None:
    """Write the analysis of the study of ``plan``. The file gets a new time even if nothing changed."""
    study = read_plan(plan).study
    write_whole(output, analyse(study, read_csv(timings, study)).model_dump_json(indent=1))
