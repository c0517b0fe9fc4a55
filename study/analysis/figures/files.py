"""The figures that are files: a table and an analysis in, each figure by its name out. ``step`` writes them."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pandas as pd
import seaborn as sns

from study.analysis.analysis import StudyResult
from study.analysis.figures import batch_size_performance, utilisation
from study.analysis.figures.style import COLOURS, PALETTE, Drawn
from study.analysis.stats.usable import counted
from study.analysis.words import short_key
from study.artifacts.checked import read_samples
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.errors import StudyError
from study.config.settings import get
from study.config.study import shown


def use_style() -> None:
    """Set seaborn's whitegrid, the palette of the page and small text."""
    # The same data give the same bytes. No text is read as a formula: a machine's name may hold any sign, and a broken
    # formula ends the drawing.
    whole = {"svg.hashsalt": "study", "text.parse_math": False, "figure.constrained_layout.use": True}
    sizes = {
        "axes.titlesize": 11,
        "axes.labelsize": 10,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
        "legend.fontsize": 9,
    }
    colours = {"text.color": PALETTE["ink"], "grid.color": PALETTE["grid"], "axes.edgecolor": PALETTE["rule"]}
    spines = {"axes.spines.top": False, "axes.spines.right": False}
    sns.set_theme(context="notebook", style="whitegrid", palette=list(COLOURS), rc=whole | sizes | colours | spines)


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
