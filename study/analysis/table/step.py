"""The step ``timings``: a plan's records and telemetry in, ``timings.csv`` out."""

from pathlib import Path

from study.analysis.table.files import read_table, write_csv
from study.artifacts.plan import read_plan


def write_timings(plan: Path, records: Path, telemetry: Path, output: Path) -> str | None:
    """Write the table of the runs of ``plan`` from the folders of its records and their telemetry.

    Return a line about the records that do not fit; None without any.
    """
    planned = read_plan(plan)
    frame, refused = read_table(planned, records, telemetry)
    write_csv(frame, output)
    if not refused:
        return None
    these = "record does not fit and is" if refused == 1 else "records do not fit and are"
    return (
        f"{planned.name}: {refused} {these} not used; the report says which and why. "
        f"To measure again: python -m study retry {planned.name}"
    )
