"""The step ``analyse``: a study's plan, records and samples in; its table, its analysis and its
figures out."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pandas as pd
from matplotlib import rc_context

from study.analysis.analysis import StudyResult, result_of
from study.analysis.answers.context import Context
from study.analysis.figures import batch_size_performance, utilisation
from study.analysis.figures.style import Drawn, use_style
from study.analysis.rows import group_rows
from study.analysis.stats.usable import counted
from study.analysis.table.files import write_csv
from study.analysis.words import place_words
from study.artifacts.block import forget_deferred, made_of
from study.artifacts.checked import read_samples
from study.artifacts.layout import Results
from study.base.errors import StudyError
from study.base.files import room_for, write_whole

INDEX = "index.json"
KINDS = (".svg", ".png", ".snakemake_timestamp")
"""Endings of the files in a folder of figures beside its index; the last is Snakemake's own
file."""


def write_analysis(name: str, files: Results) -> str | None:
    """Write what follows from the records of the study ``name``. Each file gets a new time even if
    nothing changed.

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
    """Return every figure that a study has, by name, in the order of the report; ``telemetry``
    holds its samples."""
    # The first shows single runs: the records that were excluded, too.
    performance = batch_size_performance.draw(result.plan, result.frame, result.analysis)
    figures = [("batch_size_performance", performance), *_telemetry(result, telemetry)]
    return {name: figure for name, figure in figures if figure}


def _telemetry(result: StudyResult, folder: Path) -> Iterator[tuple[str, Drawn | None]]:
    """Yield the figure of each device: the samples of every run that counts and has some, by its
    group."""
    counts = counted(result.frame)
    for device, rows in counts[counts["outcome"] == "ok"].groupby("device", sort=False):
        yield f"telemetry_{device}", utilisation.draw(_samples(result, rows, folder), str(device))


def _samples(
    result: StudyResult, rows: pd.DataFrame, folder: Path
) -> Iterator[utilisation.Samples]:
    """Yield the group and the samples of each run in some rows of the table."""
    groups = result.analysis.groups
    names = Context(result.plan.study, groups).names
    for group, own in group_rows(result.plan.study, rows, groups):
        for run in own["run"]:
            samples = samples_of(result, run, folder)
            if samples is not None:
                yield place_words(names[group.setting]) if names else "", samples


def samples_of(result: StudyResult, run: str, folder: Path) -> pd.DataFrame | None:
    """Return the samples of a run that counts, from the ``folder`` of all; None where there are
    none that fit it."""
    record = result.records.included.get(run)
    with suppress(StudyError):  # the table says why samples are not used
        return read_samples(record, folder / f"{run}.{record.key}.parquet") if record else None
    return None


def save(figures: dict[str, Drawn], folder: Path) -> None:
    """Save figures by name as SVG and PNG, and list them in ``index.json``; the folder appears
    whole or not at all.

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
            _save(figures, temporary)
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _save(figures: dict[str, Drawn], folder: Path) -> None:
    index = []
    for name, figure in figures.items():
        figure.figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        # It has its place: a second search takes as long as the drawing, and "none" would leave one
        # that is empty.
        with rc_context({"figure.constrained_layout.use": False}):
            figure.figure.set_layout_engine(None)
        figure.figure.savefig(folder / f"{name}.png", dpi=160)
        index.append(
            {"name": name, "title": figure.title, "caption": figure.caption, "alt": figure.alt}
        )
    (folder / INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False), encoding="utf-8")
