"""The start of the workflow: plan the configuration, lock the results, write the plans, list the missing runs."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.artifacts.layout import Results
from study.artifacts.plan import Command, Plan, options_of, read_earlier, read_plan, selected, write_plans
from study.artifacts.run import Run
from study.artifacts.session import read_session, remove_deferred_stamps, restamp
from study.base import devices
from study.base.errors import StudyError, printable
from study.base.files import PACKAGE, set_back
from study.base.fork_server import FORK_SERVERS
from study.config.load import read_selection
from study.config.selection import MachineClass, Selection
from study.config.settings import Settings
from study.host.allocation import requested_resources
from study.host.engine import lifetime
from study.host.engine.engine_choice import DEVICES, EngineChoice, choose_engine
from study.host.fork_servers import start_fork_servers
from study.host.plan import forecast, process_count
from study.host.plan.checks import check_images, check_limits, check_training_stack, forget_damaged, forget_images
from study.host.plan.make import plan_all, read_all

STARTED_BY = "STUDY_STARTED_BY"
"""Set by the Makefile, whose users type `make study` and may have no snakemake on their path."""

if TYPE_CHECKING:
    from filelock import FileLock


@dataclass(frozen=True)
class Workflow:
    """The plans of one start, and the paths of their files under ``results``.

    ``pending`` holds the (study, run) pairs that have no record yet. ``machines`` are the classes of machines of an
    executor that makes the runs ``on_other_machines``.
    """

    plans: list[Plan]
    results: Results
    pending: list[tuple[str, str]]
    machines: Mapping[str, MachineClass] = field(default_factory=dict)
    on_other_machines: bool = False

    def plan(self, study: str) -> Plan:
        """Return the plan of ``study``."""
        return next(plan for plan in self.plans if plan.name == study)

    def runs(self, study: str) -> list[Run]:
        """Return the runs of ``study`` that this machine can make."""
        return [run for run in self.plan(study).runs if not run.unavailable]

    def stamps(self, study: str) -> list[str]:
        """Return the path of the stamp of every record that the analysis of ``study`` reads.

        These are the records of runs that this machine can make, and those that exist although their device is absent.
        """
        return [
            str(self.results.stamp(study, run.file))
            for run in self.plan(study).runs
            if not run.unavailable or self.results.record(study, run.file).exists()
        ]

    def unmade(self, study: str) -> list[str]:
        """Return the stamps of ``study`` that are missing: Snakemake makes none behind an analysis that is there."""
        return _missing(self.stamps(study))

    @cached_property
    def missing(self) -> list[str]:
        """The paths of every image, every manifest and every decision about weights that is still to be made.

        Each run waits for all of them: a run with preparing jobs of its own would break the order.
        """
        files: list[Path] = []
        for plan in self.plans:
            for run in self.runs(plan.name):
                if plan.engine != "none":
                    files.append(self.results.image(run.image))
                files.append(self.results.manifest(run.dataset))
                files.append(self.results.weights(plan.name, run.weights))
        return _missing([str(file) for file in dict.fromkeys(files)])

    def step_image(self, study: str) -> list[str]:
        """Return the path of the image that prepares the data and weights of ``study``, if it is still to be made."""
        plan = self.plan(study)
        image = plan.preparing_image()
        return [] if plan.engine == "none" or image is None else _missing([str(self.results.image(image))])

    def image_study(self, image: str) -> str:
        """Return a study whose plan describes the image of this name."""
        return next((plan.name for plan in self.plans if image in plan.images), self.plans[0].name)

    def needed(self, study: str, run: str, key: str) -> list[str]:
        """Return every missing preparation; none if a record exists."""
        return [] if self.results.record(study, f"{run}.{key}.json").exists() else self.missing

    def dataset_study(self, dataset: str) -> str:
        """Return the study whose plan describes ``dataset``, preferably one with a run that can be made here."""
        return self._dataset_studies[dataset]

    def order(self, study: str, run: str, key: str) -> int:
        """Return the priority of a run: the first in the seeded order, study after study, has the highest."""
        return self._orders[study, run, key]

    def counter(self, study: str, run: str) -> str:
        """Return the progress label of a run for the terminal, e.g. ``run 3 of 10``."""
        return f"run {self._places.get((study, run), 0)} of {len(self.pending)}"

    def resource(self, study: str, run: str, name: str) -> str | int | None:
        """Return what a run asks an executor for under Snakemake's ``name`` of a resource; None for nothing."""
        return requested_resources(self._settings[study, run], self.machines)[name]

    # Snakemake asks for each run by itself: a search through all runs each time would take hours for 100,000.

    @cached_property
    def _dataset_studies(self) -> dict[str, str]:
        named = [(run.unavailable is not None, plan.name, run.dataset) for plan in self.plans for run in plan.runs]
        studies: dict[str, str] = {}
        for _, study, dataset in sorted(named, key=lambda item: item[0]):
            studies.setdefault(dataset, study)
        return studies

    @cached_property
    def _settings(self) -> dict[tuple[str, str], Settings]:
        return {(plan.name, run.name): run.settings for plan in self.plans for run in plan.runs}

    @cached_property
    def _orders(self) -> dict[tuple[str, str, str], int]:
        every = [(plan.name, run.name, run.key) for plan in self.plans for run in plan.runs]
        return {run: len(every) - place for place, run in enumerate(every)}

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {run: place for place, run in enumerate(self.pending, 1)}

    def foretell(self) -> None:
        """Say what a start would do, each run with its image: Snakemake's own words of a dry run name no run."""
        for plan in self.plans:
            runs = [run for study, run in self.pending if study == plan.name]
            lines = [*forecast.summary(plan, self.results), forecast.where(plan), *forecast.listed(plan, runs)]
            print("\n".join(map(printable, lines)), file=sys.stderr, flush=True)

    def remove_deferred_stamps(self) -> None:
        """Remove the stamps of the runs that a time budget left, at the end of a start."""
        for plan in self.plans:
            remove_deferred_stamps(plan.name, self.results)

    def start_fork_servers(self) -> None:
        """Start the processes from which the runs of this start are forked."""
        start_fork_servers(self.plans, [] if self.on_other_machines else self.pending, self.results)

    def told(self, study: str, run: str, key: str) -> str | None:
        """Return the last line of a run's log, in which its step said how it ended; None without one."""
        with suppress(OSError):
            lines = self.results.log(study, f"{run}.{key}").read_text(encoding="utf-8", errors="replace").splitlines()
            return printable(lines[-1]) if lines else None
        return None

    def say_what_is_kept(self) -> None:
        """Say what a start that was broken off has measured, and how to go on."""
        files = {
            (plan.name, run.name): self.results.record(plan.name, run.file) for plan in self.plans for run in plan.runs
        }
        made = sum(files[run].exists() for run in self.pending)
        print(
            f"kept: {made} of the {len(self.pending)} run(s) of this start. To go on, start it again. For a report of "
            "what is there: python -m study report",
            file=sys.stderr,
            flush=True,
        )


def _missing(files: list[str]) -> list[str]:
    return [file for file in files if not Path(file).exists()]


def use_this_checkout(base: Path) -> None:
    """Make each rule's `python -m study` use the interpreter that runs Snakemake, and the package in ``base``."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(base), before]) if before else str(base)


def plans_for(
    config: dict[str, Any],
    studies: Sequence[Path],
    results: Path,
    fetch: bool = True,
    on_other_machines: bool = False,
) -> list[Plan]:
    """Return the plans of a configuration on this machine. Raise :class:`StudyError` if one cannot be made.

    ``studies`` are the folders of their files. ``results`` may hold earlier plans: a run whose device is absent keeps
    its number of processes from there, or its record would not be found. Where an executor makes the runs
    ``on_other_machines``, every device counts as there.
    """
    selection = read_selection(config)
    read = read_all(selection, studies)  # before any engine is asked, so that errors come first
    choice = choose_engine(selection, fetch, on_other_machines)
    absent: dict[str, str | None] = {d: None if on_other_machines else devices.absent(d) for d in DEVICES}
    counts: dict[str, int | None] = {d: None if on_other_machines else devices.count(d) for d in DEVICES}
    earlier = read_earlier([name for name, study in read.items() if process_count.may_differ(study)], results)
    plans = plan_all(read, choice, absent, counts, earlier, selection.machines if on_other_machines else None)
    check_limits(plans, on_other_machines)
    if on_other_machines:
        check_images(plans, fetch)
    return [plan.model_copy(update={"start": _command(selection)}) for plan in plans]


def _command(selection: Selection) -> Command:
    """Return what this start was called with, as far as it decides what runs and where."""
    kept = selection.model_dump(mode="json", exclude_defaults=True, exclude={"studies", "time_budget_minutes"})
    typed = "study" if sys.argv[0].endswith("__main__.py") else "snakemake"
    program = "make" if os.environ.get(STARTED_BY) == "make" else typed
    return Command.model_validate({"program": program, "options": options_of(sys.argv[1:]), "config": kept})


def joined(config: dict[str, Any], results: Path) -> Workflow:
    """Return the workflow of the start for whose executor this process makes one job. It neither plans nor locks.

    Raise :class:`StudyError` if the start's plans are not there, as without a file system that both see.
    """
    os.environ.pop(FORK_SERVERS, None)  # they are processes of another machine
    layout = Results(results)
    plans = [read_plan(layout.plan(name)) for name in selected(results)]
    pending = []
    for plan in plans:
        begun, names = read_session(layout.session(plan.name)), {run.file: run.name for run in plan.runs}
        records = [record for block in begun.blocks for record in block.records] if begun else []
        pending += [(plan.name, names[record]) for record in records if record in names]
    return Workflow(plans, layout, pending, read_selection(config).machines, True)


def start(
    config: dict[str, Any],
    studies: Sequence[Path],
    results: Path,
    read_only: bool,
    fetch: bool = True,
    on_other_machines: bool = False,
) -> "tuple[Workflow, FileLock | None]":
    """Plan, lock the results, write the plans. Return the workflow and the lock, which holds while it is referenced.

    A ``read_only`` start (a dry run, a lint) takes no lock, and writes only plans that are missing. Without ``fetch``
    a missing base image is assumed to be available. An executor makes the runs ``on_other_machines``.
    """
    began, selection = time.time(), read_selection(config)
    plans = plans_for(config, studies, results, fetch, on_other_machines)
    layout = Results(results)
    lock: FileLock | None = None
    try:
        results.mkdir(parents=True, exist_ok=True)
        if read_only:
            write_plans(plans, results, only_missing=True)
        else:
            lock = lock_results(results)
            lifetime.sweep(results)
            set_back(_timed(results, [plan.name for plan in plans]))
            for plan in plans:
                forget_images(plan, layout)
            write_plans(plans, results)
            for plan in plans:
                layout.records(plan.name).mkdir(parents=True, exist_ok=True)
                remove_deferred_stamps(plan.name, layout)
                forecast.exclude_broken_blocks(plan.name, layout)
        for plan in plans:
            restamp(plan.name, [run.file for run in plan.runs], layout)
    except OSError as error:
        raise StudyError(f"{results}: the results folder cannot be written ({error.strerror})") from None
    pending = {plan.name: forecast.pending(plan, layout) for plan in plans}
    named = [(name, run.name) for name, runs in pending.items() for run in runs]
    flow = Workflow(plans, layout, named, selection.machines, on_other_machines)
    if read_only:
        return flow, lock
    for study, runs in pending.items():
        forget_damaged(study, runs, layout)
    if flow.pending and not on_other_machines:
        check_training_stack(EngineChoice(plans[0].engine, plans[0].engine_reason))
    known = {plan.name: forecast.known_seconds(plan, layout) if pending[plan.name] else {} for plan in plans}
    told = forecast.describe(plans, pending, known, selection.time_budget_minutes, layout)
    print("\n".join(map(printable, told)), file=sys.stderr, flush=True)
    for plan in plans:
        forecast.note(plan, pending[plan.name], selection, began, layout, known[plan.name])
    return flow, lock


def _timed(results: Path, studies: list[str]) -> list[Path]:
    """Return the files whose times decide what Snakemake makes again: results, and the code of the steps."""
    return [
        *results.glob("*"),
        *(file for name in studies for file in (results / name).rglob("*")),
        *PACKAGE.rglob("*"),
    ]


def lock_results(results: Path) -> "FileLock":
    """Return the acquired lock of a results folder. Raise :class:`StudyError` if another process holds it."""
    from filelock import FileLock, Timeout  # a lint of the workflow has only what Snakemake itself needs

    lock = FileLock(Results(results).lock)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StudyError(
            f"{results}: another start of the pipeline is at work in this folder; wait until it ends"
        ) from None
    return lock
