"""Figures: a table and an analysis in, a figure out. Files are touched in :func:`draw_all` alone."""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from study.figures import accuracy, batch_size_performance, order, published, speedup, telemetry
from study.figures.style import Drawn, use_style
from study.plan import Plan
from study.stats.analysis import Analysis
from study.telemetry import read_parquet

MODULES: tuple[tuple[str, Callable[[Plan, pd.DataFrame, Analysis], Drawn | None]], ...] = (
    ("batch_size_performance", batch_size_performance.draw),
    ("speedup", speedup.draw),
    ("published", published.draw),
    ("accuracy", accuracy.draw),
    ("order", order.draw),
)


def draw_all(plan: Plan, frame: pd.DataFrame, analysis: Analysis, folder: Path) -> None:
    """Draw what the study has figures for, and list them in ``index.json``; the folder appears whole or not at all."""
    use_style()
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".figures-", dir=folder.parent))
    temporary.chmod(0o755)
    index = []
    for name, draw in MODULES:
        drawn = draw(plan, frame, analysis)
        if drawn is None:
            continue
        _save(drawn.figure, temporary / name)
        index.append({"name": name, "title": drawn.title, "caption": drawn.caption, "alt": drawn.alt})
    for drawn in _telemetry(plan, frame, folder.parent / "telemetry"):
        _save(drawn.figure, temporary / f"telemetry_{len(index)}")
        index.append(
            {"name": f"telemetry_{len(index)}", "title": drawn.title, "caption": drawn.caption, "alt": drawn.alt}
        )
    (temporary / "index.json").write_text(json.dumps(index, indent=1, ensure_ascii=False), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def _telemetry(plan: Plan, frame: pd.DataFrame, folder: Path) -> list[Drawn]:
    """A monitor's view of each device: the samples of every run that has some, in the order of execution."""
    if "started" not in frame:
        return []
    sizes = {run.name: float(run.settings.training.batch_size) for run in plan.runs}
    files = {run.name: folder / run.file.replace(".json", ".parquet") for run in plan.runs}
    figures = []
    for device, rows in frame[frame["outcome"] == "ok"].sort_values("started", kind="stable").groupby("device"):
        samples = [(str(name), sizes[name], read_parquet(files[name])) for name in rows["run"] if files[name].is_file()]
        figures.append(telemetry.draw(samples, str(device)))
    return [drawn for drawn in figures if drawn]


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=160)
