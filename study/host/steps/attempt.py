"""One try at one run: a fresh process, alone on a machine that is as quiet as it gets, and its
record as a value."""

import hashlib
import os
import platform
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TextIO

from study import __version__
from study.artifacts.layout import Results
from study.artifacts.machine import Observed
from study.artifacts.plan import Plan
from study.artifacts.prepared import Image, Packages
from study.artifacts.record import JobResult, Record, Software, sealed, without_paths
from study.artifacts.record_store import Session
from study.artifacts.run import RESULT, TELEMETRY, Job, Run
from study.artifacts.setting import shareable
from study.artifacts.telemetry import Samples, read_samples, throttled_percent, write_parquet
from study.base.errors import StudyError
from study.base.extras import scheduler
from study.base.files import file_sha256, git_commit, git_is_changed, write_new
from study.base.privacy import node, plain
from study.base.processes import oom_kills_of_the_group
from study.config.settings import Settings
from study.host import packages
from study.host.engine import bring, lifetime
from study.host.engine.container import SCRATCH, environment, run_mounts, settings_inside
from study.host.engine.engine_choice import engine
from study.host.fork_servers import JOB_MODULE, Forked, begin, fork_server_of
from study.host.steps import watch
from study.host.steps.command import TIMES, CommandRun
from study.host.steps.left import discard_odd, lend, result_of, take
from study.host.supervise import Ended, supervise

Started = Literal["forked", "fresh"]
INSTRUMENTS = "STUDY_INSTRUMENTS"
"""Variable that is "off" in tests of what surrounds a run: it then measures no reference
workload."""
LIMITS = {RESULT: 2**26, TELEMETRY: 2**30, TIMES: 1000}
"""Bytes of each file that a run leaves: a week of samples has a tenth of its limit."""


class Attempt(NamedTuple):
    """One try at a run: its record, and the samples of its telemetry."""

    record: Record
    samples: Samples

    def keep(self, record: Path, samples: Path) -> Record:
        """Write the samples and then the record to these paths, and return the record with both
        checksums.

        Raise :class:`StudyError` if the record exists; it stays as it is.
        """
        kept = self.record
        if os.path.lexists(record):  # its samples stay, too
            raise StudyError(f"{record}: this record exists already and is kept")
        if len(self.samples["seconds"]):
            write_parquet(self.samples, samples)
            kept = kept.model_copy(update={"telemetry_sha256": file_sha256(samples)})
        kept = sealed(kept)
        write_new(record, kept.model_dump_json(indent=1))
        return kept


@dataclass(frozen=True)
class RunContext:
    """A run that is to be executed: what it is, where it lies, and what is said of it."""

    plan: Plan
    run: Run
    results: Path
    session: Session
    title: str
    """Names the run on the terminal."""
    log: TextIO
    """The file to which its process writes."""
    warmed_up: bool = False
    """Whether a warm-up run ran before."""
    wait_seconds: float = 0.0
    """Longest wait for a quiet machine."""
    paced: Mapping[str, Settings] = field(default_factory=dict)
    """The settings of which a warm-up run makes few steps, by the names of their paces."""

    @cached_property
    def image(self) -> Image | None:
        """The image in which it executes; None on the host."""
        return (
            None
            if self.plan.engine == "none"
            else Image.read(Results(self.results).image(self.run.image))
        )

    @cached_property
    def made(self) -> Image | Packages | None:
        """The image, or the environment of packages, in which it executes; None for the packages
        of the start."""
        if self.image or not self.run.environment:
            return self.image
        return Packages.read(Results(self.results).environment(self.run.environment))

    @property
    def python(self) -> str:
        """The interpreter of its packages on the host."""
        return packages.python_of(self.run.environment, Results(self.results))

    @property
    def libraries(self) -> Mapping[str, str]:
        """The versions of its packages."""
        return self.made.libraries if self.made else self.plan.packages

    @property
    def with_workload(self) -> bool:
        """Whether a reference workload is measured before and after it."""
        return not self.paced and os.environ.get(INSTRUMENTS) != "off"

    @property
    def seed(self) -> int:
        """Its own seed: 31 bits of a hash of the study's seed and the run's seed name."""
        return run_seed(self.plan.study.seed, self.plan.seed_name(self.run))


def attempt(context: RunContext) -> Attempt:
    """Execute a run in a fresh process, however that ends; the machine is held by the caller.

    Raise :class:`StudyError` if nothing was started.
    """
    plan, run, image = context.plan, context.run, context.image
    with lifetime.scratch_folder(context.results) as scratch:
        version = None
        if image:
            bring.bring_here(engine(plan.engine), image, context.log)
            lifetime.wait_for_turn(engine(plan.engine), context.title)
            version = engine(plan.engine).version()
        cpus = lifetime.allowed_cpus(run.settings.limits.cpus)
        before = watch.wait_until_quiet(
            plan.study.evidence, context.wait_seconds, run.settings.gpus, cpus, context.title
        )
        started, first = datetime.now(UTC), watch.read(cpus)
        clock, kills = time.perf_counter(), oom_kills_of_the_group()
        told: JobResult | None = None
        started_as: Started = "fresh"
        elsewhere: float | None = None
        if run.settings.command:
            command = _command(context, scratch)
            if image:
                end, told = command.in_a_container(engine(plan.engine), image.id)
            else:
                end, told = command.on_the_host()
            elsewhere = command.workload_cpu_seconds
        elif image is None:
            end, started_as, elsewhere = _on_the_host(context, scratch)
        else:
            end, elsewhere = _in_a_container(context, image, scratch), 0.0
        process_seconds = time.perf_counter() - clock
        # The group may hold others: if the process ended in another way, the kill was of another
        # process.
        if image is None and end.code in (0, -signal.SIGKILL):
            end = replace(end, oom_killed=oom_kills_of_the_group() > kills)
        discard_odd(scratch, LIMITS)
        if image:
            inside = _elsewhere(scratch)
            elsewhere = None if inside is None or elsewhere is None else elsewhere + inside
        seen = watch.between(first, watch.read(cpus), elsewhere)
        processes_after = watch.still_there(run.settings.gpus) if run.settings.gpus else None
        result = told or result_of(scratch / RESULT, end, run.settings.limits.memory_gib)
        samples = read_samples(scratch / TELEMETRY)
    observed = _together(seen, before, processes_after, samples)
    gpus = before.gpus
    record = Record(
        **vars(result),
        study=plan.name,
        run=run.name,
        key=run.key,
        session=context.session.number,
        block=run.block,
        position=run.position,
        started=started.isoformat(timespec="seconds"),
        setting=shareable(plan.study, run.setting),
        settings=without_paths(run.settings),
        seed=context.seed,
        process_seconds=process_seconds,
        other_device_processes=gpus.processes if gpus else None,
        device_percent_before=gpus.utilisation_percent if gpus else None,
        device_watts_before=gpus.watts if gpus else None,
        cpu_percent_before=before.observed.others_cpu_percent,
        warmed_up=context.warmed_up,
        quiet=before.quiet,
        waited_seconds=before.waited_seconds,
        observed=observed,
        disturbed=observed.crossed(plan.study.evidence.model_dump()),
        started_as=started_as,
        node=node(),
        allocation=known.allocation(run.settings.machine) if (known := scheduler()) else None,
        software=software(context, version),
    )
    return Attempt(record, samples)


def _together(
    seen: Observed, before: watch.Before, processes_after: int | None, samples: Samples
) -> Observed:
    """Return what others did during a run, with what only the moments before and after it and its
    samples tell."""
    device = watch.of_the_device(before.gpus)
    if device and processes_after:
        device["device_processes"] = max(device["device_processes"], processes_after)
    return seen.model_copy(update=device | {"throttled_percent": throttled_percent(samples)})


def _elsewhere(scratch: Path) -> float | None:
    """Return the CPU time of a container's processes in seconds, which are no children of ours;
    None if unknown."""
    try:
        return shell_times((scratch / TIMES).read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None


def shell_times(text: str) -> float | None:
    """Return the seconds in what a shell's ``times`` printed: its own in one line, its children's
    in the next."""
    found = re.findall(r"\b(\d{1,6})m(\d{1,2}(?:\.\d{1,6})?)s", text)
    return (
        sum(60 * int(minutes) + float(seconds) for minutes, seconds in found)
        if len(found) == 4
        else None
    )


def _on_the_host(context: RunContext, scratch: Path) -> tuple[Ended, Started, float | None]:
    """Return how the run's process ended, how it was started, and its CPU seconds where it was none
    of ours."""
    settings, limits = context.run.settings, context.run.settings.limits
    job = _write_job(context, context.run, str(context.results), scratch)
    process = begin(
        fork_server_of(settings) if settings.process == "forked" else None,
        f"{JOB_MODULE}:main",
        [str(job), str(scratch)],
        host_command(job, scratch, context.python),
        environment(settings.device, os.environ),
        lifetime.allowed_cpus(limits.cpus),
    )
    ended = supervise(process, context.log, context.title, limits.timeout_seconds)
    started_as: Started = "forked" if isinstance(process, Forked) else "fresh"
    return ended, started_as, process.elsewhere_seconds


def _command(context: RunContext, scratch: Path) -> CommandRun:
    """Return the command of a run, which is to be executed in its image, or on the host."""
    made = context.made
    return CommandRun(
        settings=context.run.settings,
        seed=str(context.seed),
        scratch=scratch,
        title=context.title,
        log=context.log,
        root=Path(),
        python=context.python,
        python_version=made.python if made else platform.python_version(),
        libraries=context.libraries,
        with_workload=context.with_workload,
    )


def _in_a_container(context: RunContext, image: Image, scratch: Path) -> Ended:
    run = context.run
    inside, mounts = settings_inside(run.settings)
    _write_job(context, run.model_copy(update={"settings": inside}), "results", scratch)
    # On the host the driver compiles each kernel once. A container's home folder ends with it, and
    # the first steps of every run would take some seconds more.
    on_gpu, cache = run.settings.device == "cuda", Results(Path()).cuda_cache
    if on_gpu:
        lend(context.results, scratch, [cache])
    ended = lifetime.enter(
        engine(context.plan.engine),
        image.id,
        timed(["python", "-m", JOB_MODULE, f"{SCRATCH}/job.json", SCRATCH]),
        scratch,
        [*run_mounts(run, context.plan.name, context.results), *mounts],
        context.log,
        context.title,
        settings=run.settings,
        environment={"CUDA_CACHE_PATH": f"{SCRATCH}/{cache}"} if on_gpu else {},
        gpus=on_gpu,
    )
    if on_gpu:
        with suppress(StudyError, OSError):  # a cache that cannot be kept costs time, and no run
            take(scratch, context.results, [cache])
    return ended


def timed(command: list[str], folder: str = SCRATCH) -> list[str]:
    """Return ``command`` in a shell that ends with its exit code, and leaves its CPU time in
    ``folder``.

    The kernel's own account of a container is gone with it, and is not there for every engine.
    """
    return ["sh", "-c", f'"$@"; code=$?; times > {folder}/{TIMES}; exit $code', "sh", *command]


def host_command(job: Path, scratch: Path, python: str) -> list[str]:
    """Return the argv of a training process on the host."""
    return [python, "-m", JOB_MODULE, str(job), str(scratch)]


def _write_job(context: RunContext, run: Run, results: str, scratch: Path) -> Path:
    """Write the order of the run's process. ``run`` and ``results`` are as that process sees
    them."""
    path = scratch / "job.json"
    count = run.settings.training.nodes
    paced = context.paced
    nodes = []
    if count > 1 and context.plan.engine == "none" and (known := scheduler()):
        nodes = known.nodes_of(count)
    if context.image:
        paced = {name: settings_inside(one)[0] for name, one in paced.items()}
    job = Job(
        run=run,
        study=context.plan.name,
        results=results,
        seed=context.seed,
        packages=dict(context.libraries),
        paced=dict(paced),
        reference_workload=context.with_workload,
        nodes=nodes,
    )
    path.write_text(job.model_dump_json(), encoding="utf-8")
    path.chmod(0o644)
    return path


def run_seed(study_seed: int, name: str) -> int:
    """Return the run's own seed: 31 bits of a hash of the study's seed and the run's seed name."""
    return int.from_bytes(hashlib.sha256(f"{study_seed}/{name}".encode()).digest()[:4], "big") >> 1


def software(context: RunContext, engine_version: str | None) -> Software:
    """Return the software of a measurement: version, commit, lock, engine, image."""
    plan, image, made = context.plan, context.image, context.made
    return Software(
        study_version=__version__,
        git_commit=git_commit(),
        git_dirty=git_is_changed(),
        lock_sha256=made.lock_sha256 if made else None,
        engine=plan.engine,
        engine_reason=plan.engine_reason,
        engine_version=engine_version,
        image_reference=plain(image.request.reference) if image else None,
        image=image.id if image else None,
        image_digest=image.digest if image else None,
    )
