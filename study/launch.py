"""Host side of one run: start its process, show its progress, turn whatever happens into a record."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from filelock import FileLock, Timeout
from pydantic import ValidationError
from tqdm import tqdm

from study import __version__, container
from study.errors import StudyError
from study.fingerprint import ROOT, file_sha256
from study.plan import Plan, Run
from study.privacy import anonymous
from study.processes import die_with_parent
from study.records import JobResult, Record, Software, without_paths, write_new


def launch(plan: Plan, run: Run, results: Path, session: int, log: Path, counter: str) -> Record:
    """Execute ``run`` in a fresh process, and write its record. ``counter`` says which run of how many.

    Raises :class:`StudyError` where the record exists already; it is then kept.
    """
    path = results / plan.name / "records" / run.file
    if path.exists():
        raise StudyError(f"{path.name}: this record exists already and is kept; see `python -m study retry`")
    engine = container.Engine(plan.engine, plan.engine_reason)
    seed = run_seed(plan.study.seed, run.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="study-") as scratch_name, log.open("w", encoding="utf-8") as file:
        scratch = Path(scratch_name)
        job = {"run": run.model_dump(), "study": plan.name, "results": str(results), "seed": seed}
        (scratch / "job.json").write_text(json.dumps(job, ensure_ascii=False), encoding="utf-8")
        with alone_on_this_machine(f"{counter}: {run.name}"):
            started, clock, kills = datetime.now(UTC), time.perf_counter(), oom_kills()
            code = _execute(
                container.command(engine, scratch / "job.json", scratch),
                container.environment(run.settings.device, dict(os.environ)),
                file,
                f"{counter}: {run.name}",
            )
            process_seconds = time.perf_counter() - clock
            killed = oom_kills() > kills
        result = _result(scratch / "result.json", code, killed)
    record = Record(
        **{name: getattr(result, name) for name in JobResult.model_fields},
        study=plan.name,
        run=run.name,
        key=run.key,
        session=session,
        block=run.block,
        position=run.position,
        started=started.isoformat(timespec="seconds"),
        factors={key: _without_path(value) for key, value in run.factors.items()},
        settings=without_paths(run.settings),
        seed=seed,
        process_seconds=process_seconds,
        software=software(engine),
    )
    write_new(path, record.model_dump_json(indent=1))
    return record


@contextmanager
def alone_on_this_machine(title: str) -> Iterator[None]:
    """Hold the machine's one lock for measuring: a second pipeline, in whatever folder, waits for its turn."""
    lock = FileLock(Path(tempfile.gettempdir()) / "study-measures.lock", mode=0o666)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            print(f"{title}: waiting, for another pipeline measures on this machine", file=sys.stderr, flush=True)
            lock.acquire()
    except OSError:  # the file is another user's and closed to us: better to measure than not to
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _without_path(value: Any) -> Any:
    return Path(value).name if isinstance(value, str) and os.sep in value else value


def run_seed(study_seed: int, name: str) -> int:
    """The run's own seed: 31 bits of a hash of the study's seed and the run's name."""
    return int.from_bytes(hashlib.sha256(f"{study_seed}/{name}".encode()).digest()[:4], "big") >> 1


def software(engine: container.Engine) -> Software:
    """What measured: version, commit, lock, engine."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return Software(
        study_version=__version__,
        git_commit=commit,
        git_dirty=None if commit is None or changed is None else bool(changed),
        lock_sha256=file_sha256(ROOT / "requirements.lock"),
        engine=engine.name,
        engine_reason=engine.reason,
    )


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _result(path: Path, code: int, oom_killed: bool) -> JobResult:
    """What the process left, or what its end tells."""
    if path.is_file():
        try:
            result = JobResult.model_validate_json(path.read_text(encoding="utf-8"))
            if result.outcome == "failed" and oom_killed:  # a worker of the loader was killed, not the process
                return result.model_copy(update={"outcome": "out_of_memory"})
            return result
        except ValidationError as error:
            reason = str(error).splitlines()[0]
            return JobResult(outcome="failed", message=anonymous(f"the process left no valid result: {reason}"))
    if code < 0:
        name = signal.Signals(-code).name
        if code == -signal.SIGKILL and oom_killed:
            return JobResult(outcome="out_of_memory", message="the kernel killed the process for want of memory")
        return JobResult(outcome="failed", message=f"the process was ended by {name}")
    return JobResult(outcome="failed", message=f"the process ended with exit code {code} and left no result")


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since it started; 0 where it does not tell."""
    try:
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def _execute(command: list[str], environment: dict[str, str], log: TextIO, title: str) -> int:
    """Run the command to its end; its output goes to the log, its progress to the terminal. The exit code."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    with _ended_with_us(process):
        assert process.stdout is not None
        _show(process.stdout, log, title)
        return process.wait()


def _show(lines: Iterator[str], log: TextIO, title: str) -> None:
    """A bar on a terminal, plain lines in the log."""
    bar: tqdm[Any] | None = None
    shown = ""
    for line in lines:
        if not line.startswith("progress "):
            log.write(line)
            log.flush()
            continue
        _, done, total, words = line.rstrip("\n").split(" ", 3)
        if sys.stderr.isatty():
            bar = bar or tqdm(total=int(total), desc=title, unit="step", leave=False, dynamic_ncols=True)
            bar.set_postfix_str(words, refresh=False)
            bar.update(int(done) - bar.n)
        if words != shown or done == total:
            log.write(f"{words}: step {done} of {total}\n")
            log.flush()
            shown = words
    if bar:
        bar.close()


@contextmanager
def _ended_with_us(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Stop the process and its workers when this launcher is told to stop."""

    def stop(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
