"""The step ``timings``: a plan's records and telemetry in, ``timings.csv`` out."""

from pathlib import Path

from study.analysis.table.files import read_all, read_aside, read_telemetry, write_csv
from study.analysis.table.rows import table
from study.artifacts.plan import read_plan


def write_timings(plan: Path, records: Path, telemetry: Path, output: Path) -> None:
    """Write the table of the runs of ``plan`` from the folders of its records and their telemetry."""
    planned = read_plan(plan)
    found = read_all(planned, records)
    aside = read_aside(planned, records, telemetry)
    write_csv(table(planned, found, read_telemetry(planned, found, telemetry), aside), output)
