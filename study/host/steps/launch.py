"""The host side of one run: execute it alone on the machine, and write a record however it ends."""

import hashlib
import json
import os
import signal
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import psutil
from pydantic import ValidationError

from study.artifacts import telemetry
from study.artifacts.image import Image, read
from study.artifacts.layout import Results
from study.artifacts.machine import Ceilings
from study.artifacts.plan import Plan, read_plan
from study.artifacts.record import JobResult, Record, without_paths
from study.artifacts.run import CEILINGS, RESULT, TELEMETRY, Run
from study.base import devices
from study.base.errors import StudyError
from study.base.files import file_sha256, write_new
from study.base.processes import oom_kills
from study.host.engine import container, lifetime
from study.host.engine.engines import engine
from study.host.engine.lifetime import End
from study.host.engine.mounts import run_mounts, settings_inside
from study.host.steps.ending import result_of
from study.host.steps.machine_lock import alone_on_this_machine
from study.host.steps.software import software
from study.host.supervise import execute

BUSY_WINDOW_SECONDS = 0.2


def measure(plan_file: Path, run: str, results: Path, session: int, log: Path | None, counter: str) -> str:
    """Execute the planned run called ``run``, write its record, and return a line about it: see :func:`launch`.

    The process's output goes to ``log``, by default a file in ``results``.
    """
    plan = read_plan(plan_file)
    planned = plan.run(run)
    log = log or Results(results).log(plan.name, f"{planned.name}.{planned.key}")
    record = launch(plan, planned, results, session, log, counter)
    told = record.message
    if measured := record.measurement:
        accuracy = measured.inference.accuracy if measured.inference else measured.epochs[-1].accuracy
        told = f"{measured.fit_seconds:.2f} s" + ("" if accuracy is None else f", accuracy {accuracy:.0%}")
    return f"{counter}: {record.run}: {record.outcome}, {told}"


def launch(plan: Plan, run: Run, results: Path, session: int, log: Path, counter: str) -> Record:
    """Execute ``run`` in a fresh process, write its record, and return it.

    ``counter`` is the progress label for the terminal, e.g. ``run 3 of 10``. Raise :class:`StudyError` if the record
    exists already (it is then kept), or if nothing was started.
    """
    files = Results(results)
    path = files.record(plan.name, run.file)
    if path.exists():
        raise StudyError(f"{path.name}: this record exists already and is kept; see `python -m study retry`")
    image = None if plan.engine == "none" else read(files.image(run.settings.device))
    seed = run_seed(plan.study.seed, plan.seed_name(run))
    title = f"{counter}: {run.name}"
    log.parent.mkdir(parents=True, exist_ok=True)
    with lifetime.scratch_folder(results) as scratch, log.open("w", encoding="utf-8") as file:
        with alone_on_this_machine(f"{plan.name}, {title}"):
            version = None
            if image:
                lifetime.wait_for_turn(engine(plan.engine), title)
                version = engine(plan.engine).version()
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
        sampled = _keep_telemetry(scratch / TELEMETRY, files.telemetry(plan.name, run.file))
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
    """Write the samples as the Parquet file beside the record, and return its checksum. None without samples."""
    frame = telemetry.read_samples(samples)
    if frame.empty:
        return None
    telemetry.write_parquet(frame, target)
    return file_sha256(target)


def _read_ceilings(path: Path) -> Ceilings | None:
    """Return the device's measured ceilings. None if this run measured none, or did not complete."""
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
        cpus=lifetime.allowed_cpus(limits.cpus) if limits.cpus else None,
    )
    trouble = lifetime.timed_out(limits.timeout_seconds) if ended.timed_out else None
    # The kernel counts for the whole machine: if the process ended in another way, the kill was of another process.
    return End(ended.code, oom_kills() > kills and ended.code in (0, -signal.SIGKILL), trouble)


def _in_a_container(
    plan: Plan, run: Run, results: Path, seed: int, scratch: Path, log: TextIO, title: str, image: Image
) -> End:
    inside, mounts = settings_inside(run.settings)
    _write_job(scratch, plan, run.model_copy(update={"settings": inside}), seed, "results")
    end, _ = lifetime.enter(
        engine(plan.engine),
        image.run_as,
        ["python", "-m", "study.training.job", f"{container.SCRATCH}/job.json", container.SCRATCH],
        scratch,
        [*run_mounts(run, plan.name, results), *mounts],
        log,
        title,
        settings=run.settings,
        gpus=run.settings.device == "cuda",
    )
    return end


def host_command(job: Path, scratch: Path) -> list[str]:
    """Return the argv of a training process on the host."""
    return [sys.executable, "-m", "study.training.job", str(job), str(scratch)]


def _write_job(scratch: Path, plan: Plan, run: Run, seed: int, results: str) -> Path:
    path = scratch / "job.json"
    job = {"run": run.model_dump(), "study": plan.name, "results": results, "seed": seed}
    job["ceilings"] = plan.measures_ceilings(run)
    path.write_text(json.dumps(job, ensure_ascii=False), encoding="utf-8")
    path.chmod(0o644)
    return path


def _without_path(value: Any) -> Any:
    return Path(value).name if isinstance(value, str) and os.sep in value else value


def run_seed(study_seed: int, name: str) -> int:
    """Return the run's own seed: 31 bits of a hash of the study's seed and the run's seed name."""
    return int.from_bytes(hashlib.sha256(f"{study_seed}/{name}".encode()).digest()[:4], "big") >> 1
