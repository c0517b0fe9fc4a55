"""Host side of one run: execute it alone on the machine, turn whatever happens into a record."""

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

import psutil
from filelock import FileLock, Timeout
from pydantic import ValidationError

from study import __version__, contain, container, devices, engines, fingerprint, images, telemetry
from study.contain import End
from study.errors import StudyError
from study.execute import execute
from study.fingerprint import ROOT, file_sha256
from study.images import Image
from study.measure.arithmetic import Ceilings
from study.plan import Plan, Run
from study.privacy import anonymous
from study.processes import oom_kills
from study.records import JobResult, Record, Software, without_paths, write_new

RESULT, TELEMETRY, CEILINGS = "result.json", "telemetry.csv", "ceilings.json"
BUSY_WINDOW_SECONDS = 0.2


def launch(plan: Plan, run: Run, results: Path, session: int, log: Path, counter: str) -> Record:
    """Execute ``run`` in a fresh process, and write its record. ``counter`` says which run of how many.

    Raises :class:`StudyError` where the record exists already, which is then kept, or where nothing was started.
    """
    path = results / plan.name / "records" / run.file
    if path.exists():
        raise StudyError(f"{path.name}: this record exists already and is kept; see `python -m study retry`")
    image = None if plan.engine == "none" else images.read(images.path_of(results, run.settings.device))
    seed = run_seed(plan.study.seed, plan.seed_name(run))
    title = f"{counter}: {run.name}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with contain.scratch_folder(results) as scratch, log.open("w", encoding="utf-8") as file:
        with alone_on_this_machine(f"{plan.name}, {title}"):
            version = None
            if image:
                contain.wait_for_turn(plan.engine, title)
                version = engines.version(plan.engine)
            busy = psutil.cpu_percent(BUSY_WINDOW_SECONDS)
            others = devices.activity(run.settings.training.replicas) if run.settings.device == "cuda" else None
            started, clock = datetime.now(UTC), time.perf_counter()
            if image is None:
                end = _on_the_host(plan, run, results, seed, scratch, file, title)
            else:
                end = _in_a_container(plan, run, results, seed, scratch, file, title, image)
            process_seconds = time.perf_counter() - clock
        result = result_of(scratch / RESULT, end, run.settings.limits.memory_gib)
        ceilings = _read_ceilings(scratch / CEILINGS)
        sampled = _keep_telemetry(scratch / TELEMETRY, telemetry.path_of(results, plan.name, run.file))
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
        other_device_processes=others.processes if others else None,
        device_percent_before=others.utilisation_percent if others else None,
        device_watts_before=others.watts if others else None,
        cpu_percent_before=busy,
        telemetry_sha256=sampled,
        ceilings=ceilings,
        software=software(plan, image, version),
    )
    write_new(path, record.model_dump_json(indent=1))
    return record


def _keep_telemetry(samples: Path, target: Path) -> str | None:
    """Turn the samples into the file beside the record; its checksum, None where there are none."""
    frame = telemetry.read_samples(samples)
    if frame.empty:
        return None
    telemetry.write_parquet(frame, target)
    return file_sha256(target)


def _read_ceilings(path: Path) -> Ceilings | None:
    """What the device could do, where this run measured it and came to its end."""
    with suppress(OSError, ValidationError):
        return Ceilings.model_validate_json(path.read_text(encoding="utf-8"))
    return None


def _on_the_host(plan: Plan, run: Run, results: Path, seed: int, scratch: Path, log: TextIO, title: str) -> End:
    job = _write_job(scratch, plan, run, seed, str(results))
    kills, limits = oom_kills(), run.settings.limits
    ended = execute(
        host_command(job, scratch),
        container.environment(run.settings.device, os.environ),
        log,
        title,
        timeout_seconds=limits.timeout_seconds,
        cpus=contain.allowed_cpus(limits.cpus) if limits.cpus else None,
    )
    trouble = contain.timed_out(limits.timeout_seconds) if ended.timed_out else None
    # The kernel counts for the whole machine: an end that is neither a kill nor a result was another's.
    return End(ended.code, oom_kills() > kills and ended.code in (0, -signal.SIGKILL), trouble)


def _in_a_container(
    plan: Plan, run: Run, results: Path, seed: int, scratch: Path, log: TextIO, title: str, image: Image
) -> End:
    inside, mounts = contain.settings_inside(run.settings)
    _write_job(scratch, plan, run.model_copy(update={"settings": inside}), seed, "results")
    end, _ = contain.enter(
        plan.engine,
        image.run_as,
        ["python", "-m", "study.job", f"{container.SCRATCH}/job.json", container.SCRATCH],
        scratch,
        [*contain.run_mounts(run, plan.name, results), *mounts],
        log,
        title,
        settings=run.settings,
        gpus=run.settings.device == "cuda",
    )
    return end


def host_command(job: Path, scratch: Path) -> list[str]:
    """The argv of a training process on the host."""
    return [sys.executable, "-m", "study.job", str(job), str(scratch)]


def _write_job(scratch: Path, plan: Plan, run: Run, seed: int, results: str) -> Path:
    path = scratch / "job.json"
    job = {"run": run.model_dump(), "study": plan.name, "results": results, "seed": seed}
    job["ceilings"] = plan.measures_ceilings(run)
    path.write_text(json.dumps(job, ensure_ascii=False), encoding="utf-8")
    path.chmod(0o644)
    return path


@contextmanager
def alone_on_this_machine(title: str) -> Iterator[None]:
    """Hold the machine's one lock for measuring: a second pipeline, in whatever folder, waits for its turn."""
    lock = FileLock(Path(tempfile.gettempdir()) / "study-measures.lock", mode=0o666)
    holder = Path(lock.lock_file).with_suffix(".holder")
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            whom = _holder(holder) or "another pipeline"
            print(f"{title}: waiting, for {whom} measures on this machine", file=sys.stderr, flush=True)
            lock.acquire()
        with suppress(OSError):  # another user's file: who waits is then told less
            holder.write_text(f"{os.getpid()}\n{title}\n", encoding="utf-8")
            holder.chmod(0o666)
    except OSError:  # the file is another user's and closed to us: better to measure than not to
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):  # left by another user's pipeline that was killed: not ours to remove
            holder.unlink(missing_ok=True)
        lock.release()


def _holder(path: Path) -> str | None:
    """Who measures, as the holder of the lock wrote it: ``tiny, run 3 of 10 (process 123)``."""
    try:
        number, title, *_ = path.read_text(encoding="utf-8").splitlines()
        return f"{title} (process {int(number)})"
    except (OSError, ValueError):
        return None


def _without_path(value: Any) -> Any:
    return Path(value).name if isinstance(value, str) and os.sep in value else value


def run_seed(study_seed: int, name: str) -> int:
    """The run's own seed: 31 bits of a hash of the study's seed and :meth:`study.plan.Plan.seed_name`."""
    return int.from_bytes(hashlib.sha256(f"{study_seed}/{name}".encode()).digest()[:4], "big") >> 1


def software(plan: Plan, image: Image | None, engine_version: str | None) -> Software:
    """What measured: version, commit, lock, engine, image."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return Software(
        study_version=__version__,
        git_commit=commit,
        git_dirty=None if commit is None or changed is None else bool(changed),
        lock_sha256=image.lock_sha256 if image else fingerprint.installed_lock_sha256(),
        engine=plan.engine,
        engine_reason=plan.engine_reason,
        engine_version=engine_version,
        image=image.id if image else None,
        image_digest=image.digest if image else None,
    )


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def result_of(path: Path, end: End, memory_gib: float | None = None) -> JobResult:
    """What the process left, or what its end tells. A container's exit code above 128 is a signal."""
    if path.is_file():
        try:
            result = JobResult.model_validate_json(path.read_text(encoding="utf-8"))
            if result.outcome == "failed" and end.oom_killed:  # a worker of the loader was killed, not the process
                return result.model_copy(update={"outcome": "out_of_memory"})
            return result
        except (OSError, ValidationError) as error:
            reason = str(error).splitlines()[0]
            return JobResult(outcome="failed", message=anonymous(f"the process left no valid result: {reason}"))
    if end.trouble:
        return JobResult(outcome="failed", message=anonymous(end.trouble))
    if end.oom_killed:
        limit = f", at its limit of {memory_gib:g} GiB (limits.memory_gib)" if memory_gib else ""
        return JobResult(outcome="out_of_memory", message=f"the kernel killed the process for want of memory{limit}")
    name = signal_name(end.code)
    if name:
        return JobResult(outcome="failed", message=f"the process was ended by {name}")
    return JobResult(outcome="failed", message=f"the process ended with exit code {end.code} and left no result")


def signal_name(code: int) -> str | None:
    """The signal that an exit code stands for: negative as of a child, above 128 as of a container or a shell."""
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
