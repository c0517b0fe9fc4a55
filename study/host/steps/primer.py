"""The primer: a run on a device before the first of a start that counts, so that none meets cold caches and clocks."""

import sys
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.run import Run
from study.artifacts.shelf import read_record
from study.artifacts.start import Start
from study.base.errors import StudyError
from study.base.privacy import node
from study.host.steps.attempt import attempt


def primed(plan: Plan, run: Run, results: Path, start: Start) -> bool:
    """Return whether a primer succeeded on this machine's device of ``run`` in this start; without one, execute it.

    It is like ``run``, the first on this device, and its record lies in a folder of its own. If it fails, or cannot be
    started, that is said, and the runs go on.
    """
    if not start.primer:
        return False
    files = Results(results)
    path = files.primer(start.name, node(), run.settings.device)
    try:
        if not path.exists():
            _prime(plan, run, results, start, path)
        return read_record(path).outcome == "ok"
    except StudyError as error:
        print(f"primer on {run.settings.device}: {error}", file=sys.stderr, flush=True)
        return False


def _prime(plan: Plan, run: Run, results: Path, start: Start, path: Path) -> None:
    """Execute the primer, write its record and telemetry, and tell how it ended."""
    title = f"primer on {run.settings.device}, like {run.name}"
    log = Results(results).log("primers", path.stem)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        record = attempt(plan, run, results, start, file, title, False).keep(path, path.with_suffix(".parquet"))
    told = "" if record.message is None else f" ({record.message})"
    print(f"{title}: {record.outcome}, {record.process_seconds:.1f} s{told}; in no number", file=sys.stderr, flush=True)
