"""The step ``analyse``: a study's plan, records and samples in; its table, its analysis and its figures out."""

from study.analysis.figures.files import drawn, use_style
from study.analysis.figures.step import save
from study.analysis.result import result_of
from study.analysis.table.files import write_csv
from study.artifacts.layout import Results
from study.base.files import write_whole


def write_analysis(name: str, files: Results) -> str | None:
    """Write what follows from the records of the study ``name``. Each file gets a new time even if nothing changed.

    Return a line about the records that do not fit; None without any.
    """
    use_style()
    result = result_of(files, name)
    write_csv(result.frame, files.timings(name))
    write_whole(files.fit(name), result.analysis.model_dump_json(indent=1))
    save(drawn(result, files.telemetry_folder(name)), files.figures(name))
    refused = len(result.records.refused) + len(result.records.refused_aside)
    if not refused:
        return None
    these = "record does not fit and is" if refused == 1 else "records do not fit and are"
    return (
        f"{name}: {refused} {these} not used; the report says which and why. "
        f"To measure again: python -m study retry {name}"
    )
