"""A planned run from its order to its record: in time, after a warm-up run, measured again if others disturbed it.

The warm-up run is a run on a device before the first of a start that counts, so that none meets cold caches and clocks.
"""

import os
import sys
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.plan import Plan, read_plan
from study.artifacts.record import Record
from study.artifacts.record_store import free_aside, read_record
from study.artifacts.run import Run
from study.artifacts.session import Session, read_session, write_session, write_stamp
from study.base.errors import StudyError
from study.base.files import room_for, set_back
from study.base.privacy import node
from study.base.processes import not_ended
from study.host.steps import budget
from study.host.steps.attempt import Attempt, attempt
from study.host.steps.budget import time_left, with_block_ended

INPUTS = ("images/*.json", "data/*/manifest.json", "*/weights/*.json", "*/plan.json", "*/stamps/*")
"""Inputs of the workflow's jobs. The clock may have been set back since they were made in this start."""


def measure(plan_file: Path, run: str, results: Path, log: Path | None, counter: str) -> str | None:
    """Execute the planned run called ``run``, write its record and stamp, and return a line about it.

    A record that exists is kept, and nothing is executed. If its start's time budget leaves its block for another
    start, write the stamp alone, and return a line for the first such run only. The process's output goes to ``log``,
    by default a file in ``results``.
    """
    plan, files = read_plan(plan_file), Results(results)
    planned = plan.run(run)
    if os.path.lexists(files.record(plan.name, planned.file)):
        write_stamp(plan.name, planned.file, files)
        return f"{planned.name}: its record exists and is kept; see `python -m study retry {plan.name}`"
    session = read_session(files.session(plan.name)) or Session()
    deferred, text = budget.is_deferred(plan, planned, session, files)
    if deferred:
        return text
    log = log or files.log(plan.name, f"{planned.name}.{planned.key}")
    with room_for(files.record(plan.name, planned.file)):
        record = launch(plan, planned, results, session, log, counter)
    set_back(path for pattern in INPUTS for path in results.glob(pattern))
    line = f"{counter}: {record.run}: {record.outcome}, {_told(record)}"
    return "; ".join(filter(None, [line, time_left(plan.name, files)]))


def _told(record: Record) -> str | None:
    """Return the time of a run with the accuracy that it reached, else why it has none."""
    measured = record.measurement
    if measured is None:
        return record.message
    accuracy = measured.inference.accuracy if measured.inference else measured.epochs[-1].accuracy
    return f"{measured.fit_seconds:.2f} s" + ("" if accuracy is None else f", accuracy {accuracy:.0%}")


def launch(plan: Plan, run: Run, results: Path, session: Session, log: Path, counter: str) -> Record:
    """Execute ``run`` in a fresh process, publish its record, and return it. Execute it once more if it was disturbed.

    The first record is then kept beside those that count. ``counter`` is the progress label for the terminal, e.g.
    ``run 3 of 10``. Raise :class:`StudyError` if the record exists already (it is then kept), or if nothing was
    started.
    """
    files, title = Results(results), f"{counter}: {run.name}"
    path = files.record(plan.name, run.file)
    if os.path.lexists(path):  # a broken link would cost the measurement
        why = "this record exists already and is kept"
        raise StudyError(f"{path.name}: {why}; see `python -m study retry {plan.name}`")
    warmed_up = run_warm_up(plan, run, results, session)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        tried = attempt(plan, run, results, session, file, title, warmed_up)
        if tried.record.disturbed:
            tried.keep(*free_aside(path, "disturbed"))
            kinds = ", ".join(tried.record.disturbed)
            print(f"{title}: disturbed ({kinds}): kept aside, and measured once more", file=sys.stderr, flush=True)
            tried = attempt(plan, run, results, session, file, title, warmed_up)
    return publish(tried, plan, run, files)


def publish(tried: Attempt, plan: Plan, run: Run, files: Results) -> Record:
    """Write a record with its telemetry, its stamp, and that its block ended if it was the last; return the record.

    A signal waits until all of them are there.
    """
    with not_ended():
        record = tried.keep(files.record(plan.name, run.file), files.telemetry(plan.name, run.file))
        write_stamp(plan.name, run.file, files)
        note_end(plan.name, run, files)
    return record


def note_end(study: str, run: Run, files: Results) -> None:
    """Note in the file of the start that the block of ``run`` ended, if each of its records is there, and its times."""
    session = read_session(files.session(study))
    block = session.block(run.file) if session else None
    if session and block and all(files.record(study, name).exists() for name in block.records):
        write_session(with_block_ended(session, block, study, files), files.session(study))


def run_warm_up(plan: Plan, run: Run, results: Path, session: Session) -> bool:
    """Return whether a warm-up run succeeded on this machine's device of ``run`` in this start; without one, execute
    it.

    It is like ``run``, the first on this device, and its record lies in a folder of its own. If it fails, or cannot be
    started, that is said, and the runs go on.
    """
    if not session.warm_up_run:
        return False
    files = Results(results)
    path = files.warm_up_run(session.name, node(), run.settings.device)
    try:
        if not path.exists():
            _execute(plan, run, results, session, path)
        return read_record(path).outcome == "ok"
    except StudyError as error:
        print(f"warm-up run on {run.settings.device}: {error}", file=sys.stderr, flush=True)
        return False


def _execute(plan: Plan, run: Run, results: Path, session: Session, path: Path) -> None:
    """Execute the warm-up run, write its record and telemetry, and tell how it ended."""
    title = f"warm-up run on {run.settings.device}, like {run.name}"
    log = Results(results).log("warm_up_runs", path.stem)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        record = attempt(plan, run, results, session, file, title, False).keep(path, path.with_suffix(".parquet"))
    told = "" if record.message is None else f" ({record.message})"
    print(f"{title}: {record.outcome}, {record.process_seconds:.1f} s{told}; in no number", file=sys.stderr, flush=True)
