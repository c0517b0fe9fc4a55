"""The step ``analyse``: a study's plan, records and samples in; its table, its analysis and its figures out."""

import json
import shutil
import tempfile
from pathlib import Path

from matplotlib import rc_context

from study.analysis.analysis import result_of
from study.analysis.figures.files import drawn, use_style
from study.analysis.figures.style import Drawn
from study.analysis.table.files import write_csv
from study.artifacts.block import forget_deferred, made_of
from study.artifacts.layout import Results
from study.base.errors import StudyError
from study.base.files import room_for, write_whole

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
