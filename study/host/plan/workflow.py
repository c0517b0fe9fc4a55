"""The start of the workflow: plan the configuration, lock the results, write the plans, list the
missing blocks."""

import logging
import os
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.artifacts.block import Block, blocks_of, is_ahead, made_of, page_made_of, tidy
from study.artifacts.layout import Results
from study.artifacts.plan import (
    Command,
    Plan,
    length_of,
    options_of,
    read_earlier,
    selected,
    write_plans,
)
from study.artifacts.record_store import lock_results
from study.base import devices
from study.base.errors import StudyError, printable
from study.base.extras import scheduler
from study.base.files import reason
from study.base.fork_server import FORK_SERVERS
from study.base.processes import ASKED_TO_END, escape
from study.config.load import read_selection, read_study, study_name
from study.config.selection import MachineClass, Selection
from study.host.engine import lifetime
from study.host.engine.engine_choice import DEVICES, choose_engine
from study.host.fork_servers import start_fork_servers
from study.host.plan import forecast, process_count
from study.host.plan.checks import (
    check_images,
    check_limits,
    forget_damaged,
    forget_images,
    warnings,
)
from study.host.plan.make import make_plan
from study.host.plan.training_stack import check_training_stack

if TYPE_CHECKING:
    from filelock import FileLock


@dataclass(frozen=True)
class Workflow:
    """The plans of one start, and the paths of their files under ``results``.

    ``machines`` are the classes of machines of an executor that makes the blocks
    ``on_other_machines``.
    """

    plans: list[Plan]
    results: Results
    machines: Mapping[str, MachineClass] = field(default_factory=dict)
    on_other_machines: bool = False
    waiting: Collection[str] = ()
    """Studies whose length was not chosen when they were planned: a job does, before any block."""

    @property
    def studies(self) -> list[str]:
        """The names of the selected studies."""
        return [plan.name for plan in self.plans]

    def plan(self, study: str) -> Plan:
        """Return the plan of ``study``."""
        return next(plan for plan in self.plans if plan.name == study)

    @cached_property
    def blocks(self) -> dict[tuple[str, str], Block]:
        """Every block by its study and its name, in the order of execution, as this start found
        them."""
        blocks = chain(
            *(blocks_of(plan, self.results, self.on_other_machines) for plan in self.plans)
        )
        return {(block.study, block.name): block for block in blocks}

    @cached_property
    def pending(self) -> list[Block]:
        """The blocks that this start is to make."""
        return [block for block in self.blocks.values() if block.missing(self.results)]

    def inputs(self, study: str) -> list[str]:
        """Return the paths of the blocks that the analysis of ``study`` reads.

        Snakemake calls a step failed whose input is dated in the future.
        """
        paths = [self.results.block(*key) for key in self.blocks if key[0] == study]
        return [str(path) for path in paths if not is_ahead(path)]

    @property
    def missing_blocks(self) -> list[str]:
        """The paths of the blocks that a start would make, of studies whose length is chosen."""
        return _missing(
            self.results.block(*key) for key in self.blocks if key[0] not in self.waiting
        )

    @cached_property
    def missing(self) -> list[str]:
        """The paths of every image, environment, manifest and decision about weights that is
        still to be made.

        Each block waits for all of them: preparing beside a run would disturb it.
        """
        files: list[Path] = []
        for plan in self.plans:
            runs = [run for run in plan.runs if not run.unavailable]
            files += map(
                self.results.image, {run.image: 0 for run in runs if plan.engine != "none"}
            )
            files += [
                self.results.environment(name)
                for name in {run.environment: 0 for run in runs}
                if name
            ]
            files += map(self.results.manifest, {run.dataset: 0 for run in runs})
            files += [
                self.results.weights(plan.name, weights)
                for weights in {run.weights: 0 for run in runs}
            ]
        return _missing(dict.fromkeys(files))

    def step_image(self, study: str) -> list[str]:
        """Return the path of the image that prepares the data and weights of ``study``, if it is
        still to be made."""
        plan = self.plan(study)
        image = plan.preparing_image()
        return (
            [] if plan.engine == "none" or image is None else _missing([self.results.image(image)])
        )

    def study_with(self, name: str) -> str:
        """Return a study whose plan describes the image, or the environment of packages, of this
        name."""
        holding = (
            plan.name for plan in self.plans if name in plan.images or name in plan.environments
        )
        return next(holding, self.plans[0].name)

    def dataset_study(self, dataset: str) -> str:
        """Return the study whose plan describes ``dataset``, preferably one with a run that can be
        made here."""
        reading = []
        for plan in self.plans:
            reading += [(plan.name, run.unavailable) for run in plan.runs if run.dataset == dataset]
        # False sorts before True: a run that can be made comes first.
        return min(reading, key=lambda one: one[1] is not None)[0]

    def needed(self, study: str, block: str) -> list[str]:
        """Return every missing preparation; none if each record of the block exists."""
        found = self.blocks.get((study, block))
        return self.missing if found and found.missing(self.results) else []

    def order(self, study: str, block: str) -> int:
        """Return the priority of a block: the first in the order, study after study, has the
        highest."""
        return self._orders.get((study, block), 0)

    @cached_property
    def _orders(self) -> dict[tuple[str, str], int]:
        return {key: len(self.blocks) - place for place, key in enumerate(self.blocks)}

    @property
    def first(self) -> int:
        """A priority above that of every block: whatever prepares comes before whatever
        measures."""
        return len(self.blocks) + 1

    def told(self, study: str, block: str) -> str:
        """Return what a block will do, in lines, for Snakemake's words about its job."""
        found = self.blocks.get((study, block))
        return (
            "\n".join(map(printable, forecast.listed(self.plan(study), found))) if found else block
        )

    def resource(self, study: str, block: str, name: str) -> str | int | None:
        """Return what a block asks an executor for under Snakemake's ``name`` of a resource; None
        for nothing."""
        found, known = self.blocks.get((study, block)), scheduler()
        if not found or not known:
            return None
        asked: dict[str, str | int | None] = known.requested_resources(
            [run.settings for run in found.runs], self.machines
        )
        return asked[name]

    def foretell(self) -> None:
        """Say what a start would do; Snakemake's own words of a dry run then name each block with
        its runs."""
        for plan in self.plans:
            lines = [*forecast.summary(plan, self.results), forecast.where(plan)]
            if plan.name in self.waiting:
                lines.append(f"{plan.name}: its length is not chosen yet: at most as above")
            print("\n".join(map(printable, lines)), file=sys.stderr, flush=True)

    def start_fork_servers(self) -> None:
        """Start the processes from which the runs of this start are forked."""
        runs = []
        for block in self.pending:
            runs += [(block.study, run.name) for run in block.runs]
        start_fork_servers(self.plans, [] if self.on_other_machines else runs, self.results)

    def say_what_is_kept(self) -> None:
        """Say what a start that was broken off has measured, and how to go on."""
        runs = sum(len(block.runs) for block in self.pending)
        made = runs - sum(len(block.missing(self.results)) for block in self.pending)
        print(
            f"{'interrupted; ' * ASKED_TO_END.is_set()}kept: {made} of the {runs} run(s) of "
            "this start. To go on, "
            "start it again. For a report of what is there: python -m study report",
            file=sys.stderr,
            flush=True,
        )


def _missing(files: Iterable[Path]) -> list[str]:
    return [str(file) for file in files if not file.exists()]


def use_this_checkout(base: Path) -> None:
    """Make each rule's `python -m study` use the interpreter that runs Snakemake, and the package
    in ``base``; and Snakemake's log escape what the locale cannot show, such as its own path."""
    for handler in logging.getLogger("snakemake.logging").handlers:
        escape(getattr(handler, "stream", None))
    os.environ["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    )
    # See study.base.python_first. PYTHONPATH holds no folder with its separator: such a checkout is
    # found in the working folder.
    os.environ["PYTHONSAFEPATH"] = "" if os.pathsep in str(base) else "1"
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(base), before]) if before else str(base)


def plans_for(
    config: dict[str, Any],
    studies: Sequence[Path],
    results: Path,
    fetch: bool = True,
    on_other_machines: bool = False,
) -> list[Plan]:
    """Return the plans of a configuration on this machine. Raise :class:`StudyError` if one cannot
    be made.

    ``studies`` are the folders of their files. ``results`` may hold earlier plans: a run whose
    device is absent keeps its number of processes from there, or its record would not be found.
    Where an executor makes the runs ``on_other_machines``, every device counts as there.
    """
    selection = read_selection(config)
    # Before any engine is asked, so that errors come first.
    files = {study_name(called): called for called in reversed(selection.studies)}
    if twice := [called for called in selection.studies if files[study_name(called)] != called]:
        raise StudyError(
            key="studies", value=twice[0], why="another one has its name", allowed="each name once"
        )
    read = {}
    for called in selection.studies:
        name = study_name(called)
        length = length_of(name, Results(results))
        read[name] = read_study(called, studies, selection, length.rung if length else None)
    choice = choose_engine(selection, fetch, on_other_machines)
    absent: dict[str, str | None] = {
        d: None if on_other_machines else choice.absent(d) for d in DEVICES
    }
    counts: dict[str, int | None] = {
        d: None if on_other_machines else devices.count(d) for d in DEVICES
    }
    earlier = read_earlier(
        [name for name, study in read.items() if process_count.may_differ(study)], results
    )
    machines = selection.machines if on_other_machines else None
    plans = [
        make_plan(name, one, choice, absent, counts, earlier.get(name), machines)
        for name, one in read.items()
    ]
    check_limits(plans, on_other_machines)
    if on_other_machines:
        check_images(plans, fetch)
    return [plan.model_copy(update={"start": _command(selection)}) for plan in plans]


def _command(selection: Selection) -> Command:
    """Return what this start was called with, as far as it decides what runs and where."""
    kept = selection.model_dump(
        mode="json", exclude_defaults=True, exclude={"studies", "time_budget_minutes"}
    )
    program = "study" if Path(sys.argv[0]).name in ("__main__.py", "study") else "snakemake"
    files = {
        study_name(called): called for called in selection.studies if called != study_name(called)
    }
    return Command.model_validate(
        {"program": program, "files": files, "options": options_of(sys.argv[1:]), "config": kept}
    )


def joined(config: dict[str, Any], results: Path) -> Workflow:
    """Return the workflow of the start for whose executor this process makes one job. It neither
    plans nor locks.

    Raise :class:`StudyError` if the start's plans are not there, as without a file system that both
    see.
    """
    os.environ.pop(FORK_SERVERS, None)  # they are processes of another machine
    layout = Results(results)
    plans = [Plan.read(layout.plan(name)) for name in selected(results)]
    return Workflow(plans, layout, read_selection(config).machines, True)


def start(
    config: dict[str, Any],
    studies: Sequence[Path],
    results: Path,
    read_only: bool,
    fetch: bool = True,
    on_other_machines: bool = False,
) -> "tuple[Workflow, FileLock | None]":
    """Plan, lock the results, write the plans. Return the workflow and the lock, which holds while
    it is referenced.

    A ``read_only`` start (a dry run, a lint) takes no lock, and writes only plans that are missing.
    Without ``fetch`` a missing base image is assumed to be available. An executor makes the blocks
    ``on_other_machines``.
    """
    began, selection = time.time(), read_selection(config)
    plans = plans_for(config, studies, results, fetch, on_other_machines)
    layout = Results(results)
    waiting = waiting_for_a_length(plans, layout)
    flow = Workflow(plans, layout, selection.machines, on_other_machines, waiting)
    try:
        results.mkdir(parents=True, exist_ok=True)
        if read_only:
            write_plans(plans, results, only_missing=True)
            return flow, None
        lock = lock_results(results)
        lifetime.sweep(results)
        for plan in plans:
            forget_images(plan, layout)
        write_plans(plans, results)
        for plan in plans:
            layout.records(plan.name).mkdir(parents=True, exist_ok=True)
            tidy(plan.name, layout)
    except OSError as error:
        raise StudyError(
            f"{error.filename or results}: the results folder cannot be written ({reason(error)})"
        ) from None
    for plan in plans:
        runs = forecast.pending(plan, layout)
        forget_damaged(plan.name, runs, layout)
        if runs:
            forecast.note(plan, selection, began, layout)
    if flow.pending and not on_other_machines:
        for plan in plans:
            check_training_stack(plan)
    _forget_stale(flow)
    told = forecast.describe(plans, selection.time_budget_minutes, layout)
    told += warnings(plans) if flow.pending and not on_other_machines else []
    print("\n".join(map(printable, told)), file=sys.stderr, flush=True)
    return flow, lock


def chosen(flow: Workflow, config: dict[str, Any], studies: Sequence[Path]) -> Workflow:
    """Return the workflow of a start whose jobs have chosen the length of a study: it is planned
    again."""
    others = flow.on_other_machines
    plans = plans_for(config, studies, flow.results.root, False, others)
    write_plans(plans, flow.results.root)
    return replace(flow, plans=plans, waiting=waiting_for_a_length(plans, flow.results))


def waiting_for_a_length(plans: Iterable[Plan], files: Results) -> list[str]:
    """Return the names of the studies with a ladder of which no rung is chosen yet."""
    return [
        plan.name for plan in plans if plan.study.ladder and length_of(plan.name, files) is None
    ]


def _forget_stale(flow: Workflow) -> None:
    """Remove each analysis, and the page, that is not made of what is there; Snakemake makes what
    is missing.

    Files dated in the future are made again: Snakemake would take them for newer than whatever
    follows from them.
    """
    files = flow.results
    missing = flow.missing_blocks
    for study in flow.studies:
        tables = [files.timings(study), files.epochs(study)]
        made = [files.fit(study), *tables, files.figures(study)]
        lacks = any(Path(path).parent == files.blocks(study) for path in missing)
        if lacks or _is_stale(files.made_of(study), made_of(study, files), made):
            files.fit(study).unlink(missing_ok=True)
    if _is_stale(files.report_made_of, page_made_of(flow.studies, files), [files.report]):
        files.report.unlink(missing_ok=True)


def _is_stale(note: Path, expected: str, outputs: Sequence[Path]) -> bool:
    """Return whether an output is missing or ahead of the clock, or was made of something else than
    ``expected``."""
    kept = note.read_text(encoding="ascii", errors="replace") if note.is_file() else None
    return kept != expected or any(not path.exists() or is_ahead(path) for path in outputs)
