"""The step ``analyse``: a study's plan, records and samples in; its table, its analysis and its
figures out."""

import json
import shutil
import tempfile
from pathlib import Path

from study.analysis.analysis import StudyResult, result_of
from study.analysis.figures.curve import curve_chart
from study.analysis.figures.duration import length_chart, phases_chart
from study.analysis.figures.learning import learning_charts
from study.analysis.figures.settings import main_chart, pairs_chart, rows_of, switch_charts
from study.analysis.figures.style import Chart, our_look
from study.analysis.table.tables import write_csv
from study.artifacts.block import made_of
from study.artifacts.layout import Results
from study.base.errors import StudyError
from study.base.files import room_for, write_whole

INDEX = "index.json"
PIXELS = 144
"""Of an inch of a PNG: two for each pixel of the page."""
KINDS = (".svg", ".png", ".snakemake_timestamp")
"""Endings of the files in a folder of figures beside its index; the last is Snakemake's own
file."""


def write_analysis(name: str, files: Results) -> str | None:
    """Write what follows from the records of the study ``name``. Each file gets a new time even if
    nothing changed.

    Return a line about the records that do not fit; None without any.
    """
    made = made_of(files.plan(name).read_text(encoding="utf-8"), name, files)
    result = result_of(files, name)
    write_csv(result.frame, files.timings(name))
    write_whole(files.epochs(name), result.epochs.to_csv(index=False))
    write_whole(files.fit(name), result.analysis.model_dump_json(indent=1))
    save(charts_of(result), files.figures(name))
    write_whole(files.made_of(name), made)
    refused = len(result.records.refused) + len(result.records.refused_aside)
    if not refused:
        return None
    these = "record does not fit and is" if refused == 1 else "records do not fit and are"
    return (
        f"{name}: {refused} {these} not used; the report says which and why. "
        f"To measure again: {result.plan.start.retry(name)}"
    )


def charts_of(result: StudyResult) -> dict[str, Chart]:
    """Return every chart of a study by name, the main one first: the page, the files and ``import
    study`` have the same."""
    plan = result.plan
    analysis = result.analysis
    rows = rows_of(plan, result.frame, analysis)
    curve = curve_chart(plan, rows, analysis)
    switches = enumerate(switch_charts(plan.study, analysis))
    found = {
        **{f"switches{place or ''}": chart for place, chart in switches},
        "pairs": None if curve else pairs_chart(plan, rows, analysis),
        "curve": curve,
        "runs": None if curve else main_chart(plan, rows, analysis),
        "phases": phases_chart(plan, analysis),
        "length": length_chart(analysis.length),
        **learning_charts(result, rows),
    }
    return {name: chart for name, chart in found.items() if chart}


def save(charts: dict[str, Chart], folder: Path) -> None:
    """Save charts by name as SVG and PNG, and all of them for the page in ``index.json``; the
    folder appears whole or not at all.

    Raise :class:`StudyError` if ``folder`` holds other files: it is replaced as a whole.
    """
    for path in folder.iterdir() if folder.exists() else ():
        if not path.name.endswith(KINDS) and path.name != INDEX:
            raise StudyError(
                f"{folder}: cannot be replaced by figures: it holds {path.name}, which is no figure"
            )
    with room_for(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".figures-", dir=folder.parent))
        try:
            temporary.chmod(0o755)
            kept = []
            for name, chart in charts.items():
                figure = chart.figure
                with our_look():
                    figure.savefig(temporary / f"{name}.svg", metadata={"Date": None})
                    figure.savefig(temporary / f"{name}.png", dpi=PIXELS)
                kept.append(chart.kept(name, figure).model_dump())
            write_whole(temporary / INDEX, json.dumps(kept, indent=1, ensure_ascii=False))
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
