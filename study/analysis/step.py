"""The step ``analyse``: a study's plan, records and samples in; its table, its analysis and its figures out."""

import json
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pandas as pd
from matplotlib import rc_context

from study.analysis.analysis import StudyResult, result_of
from study.analysis.figures import batch_size_performance, utilisation
from study.analysis.figures.style import Drawn, use_style
from study.analysis.stats.usable import counted
from study.analysis.table.files import write_csv
from study.analysis.words import short_key
from study.artifacts.block import forget_deferred, made_of
from study.artifacts.checked import read_samples
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.errors import StudyError
from study.base.files import room_for, write_whole
from study.config.settings import get
from study.config.study import shown

INDEX = "index.json"
KINDS = (".svg", ".png", ".snakemake_timestamp")
"""Endings of the files in a folder of figures beside its index; the last is Snakemake's own file."""


def write_analysis(name: str, files: Results) -> str | None:
    """Write what follows from the records of the study ``name``. Each file gets a new time even if nothing changed.

    Return a line about the records that do not fit; None without any.
    """
    forget_deferred(name, files)
    made = made_of(name, files)
    use_style()
    result = result_of(files, name)
    write_csv(result.frame, files.timings(name))
    write_whole(files.fit(name), result.analysis.model_dump_json(indent=1))
    save(drawn(result, files.telemetry_folder(name)), files.figures(name))
    write_whole(files.made_of(name), made)
    refused = len(result.records.refused) + len(result.records.refused_aside)
    if not refused:
        return None
    these = "record does not fit and is" if refused == 1 else "records do not fit and are"
    return (
        f"{name}: {refused} {these} not used; the report says which and why. "
        f"To measure again: {result.plan.start.retry(name)}"
    )


def drawn(result: StudyResult, telemetry: Path) -> dict[str, Drawn]:
    """Return every figure that a study has, by name, in the order of the report; ``telemetry`` holds its samples."""
    plan, frame, analysis, found = result.plan, result.frame, result.analysis, result.records.included
    # The first shows single runs: the records that were excluded, too.
    figures = [("batch_size_performance", batch_size_performance.draw(plan, frame, analysis))]
    figures += _telemetry(plan, counted(frame), found, telemetry)
    return {name: figure for name, figure in figures if figure}


def _telemetry(
    plan: Plan, frame: pd.DataFrame, records: Mapping[str, Record], folder: Path
) -> list[tuple[str, Drawn | None]]:
    """A monitor's view of each device: the samples of every run that has some, by the levels of one factor."""
    keys = [key for key in plan.study.compared if key != "device"] or ["training.batch_size"]
    x = next((key for key in keys if key == (plan.study.curve.x if plan.study.curve else None)), keys[0])
    levels = plan.study.factors.get(x, [])
    places = {level: place for place, level in enumerate(levels)}
    runs = {run.name: run for run in sorted(plan.runs, key=lambda run: places.get(get(run.settings, x), len(levels)))}

    def samples(names: Collection[str]) -> Iterator[utilisation.Samples]:
        for name, run in runs.items():
            with suppress(StudyError):  # the table says why samples are not used
                kept = name in names and name in records
                found = read_samples(records[name], folder / run.telemetry_file) if kept else None
                if found is not None:
                    yield str(shown(plan.study, x, get(run.settings, x))), found

    return [
        (f"telemetry_{device}", utilisation.draw(samples(set(rows["run"])), str(device), short_key(x)))
        for device, rows in frame[frame["outcome"] == "ok"].groupby("device")
    ]


def save(figures: dict[str, Drawn], folder: Path) -> None:
    """Save figures by name as SVG and PNG, and list them in ``index.json``; the folder appears whole or not at all.

    Raise :class:`StudyError` if ``folder`` holds other files: it is replaced as a whole.
    """
    for path in folder.iterdir() if folder.exists() else ():
        if not path.name.endswith(KINDS) and path.name != INDEX:
            raise StudyError(f"{folder}: cannot be replaced by figures: it holds {path.name}, which is no figure")
    with room_for(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".figures-", dir=folder.parent))
        try:
            temporary.chmod(0o755)
            _save(figures, temporary)
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _save(figures: dict[str, Drawn], folder: Path) -> None:
    index = []
    for name, figure in figures.items():
        figure.figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        # It has its place: a second search takes as long as the drawing, and "none" would leave one that is empty.
        with rc_context({"figure.constrained_layout.use": False}):
            figure.figure.set_layout_engine(None)
        figure.figure.savefig(folder / f"{name}.png", dpi=160)
        index.append({"name": name, "title": figure.title, "caption": figure.caption, "alt": figure.alt})
    (folder / INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False), encoding="utf-8")
