"""The step ``figures``: a plan, its table, its analysis, its records and telemetry in, a folder of figures out."""

import json
import shutil
import tempfile
from pathlib import Path

from study.analysis.figures import drawn
from study.analysis.figures.style import Drawn, use_style
from study.analysis.stats.analysis import read_analysis
from study.analysis.table.files import read_csv
from study.artifacts.plan import read_plan


def write_figures(plan: Path, timings: Path, fit: Path, records: Path, telemetry: Path, output: Path) -> None:
    """Draw what the study of ``plan`` has figures for into the folder ``output``."""
    use_style()
    planned = read_plan(plan)
    save(drawn(planned, read_csv(timings, planned.study), read_analysis(fit), records, telemetry), output)


def save(figures: dict[str, Drawn], folder: Path) -> None:
    """Save figures by name as SVG and PNG, and list them in ``index.json``; the folder appears whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".figures-", dir=folder.parent))
    temporary.chmod(0o755)
    index = []
    for name, figure in figures.items():
        figure.figure.savefig(temporary / f"{name}.svg", metadata={"Date": None})
        figure.figure.savefig(temporary / f"{name}.png", dpi=160)
        index.append({"name": name, "title": figure.title, "caption": figure.caption, "alt": figure.alt})
    (temporary / "index.json").write_text(json.dumps(index, indent=1, ensure_ascii=False), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
