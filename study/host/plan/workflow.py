"""A start of the workflow: its plans in memory, what is missing or outdated in the results, and the
first of its steps, which writes the plans.

Snakemake asks for all but that step while it reads the rules, also where somebody only looks at
them: nothing is written, removed, locked or downloaded then.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from study.artifacts.block import Block, blocks_of, is_ahead, made_of, page_made_of
from study.artifacts.layout import Results
from study.artifacts.plan import (
    Plan,
    StartCommand,
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
from study.base.fork_server import FORK_SERVERS
from study.base.processes import ASKED_TO_END, escape
from study.base.strict import Strict
from study.config.load import read_selection, read_study, study_name
from study.config.selection import Selection
from study.host.engine import lifetime
from study.host.engine.engine_choice import DEVICES, choose_engine
from study.host.fork_servers import start_fork_servers
from study.host.plan import forecast, process_count
from study.host.plan.checks import (
    check_images,
    check_limits,
    check_training_stack,
    outdated_preparation,
    warnings,
)
from study.host.plan.configuration import DRY_RUN, study_folders
from study.host.plan.make import make_plan


class Request(Strict):
    """What a start is asked for. Its first step is told, to plan the same."""

    config: dict[Any, Any] = {}
    """As it was given: :func:`read_selection` says what of it is not allowed."""
    on_other_machines: bool = False
    """Whether an executor makes the blocks elsewhere."""
    arguments: list[str] = []
    """The words with which it was called."""


@dataclass(frozen=True)
class Workflow:
    """The plans of one start, and the paths of their files under ``results``."""

    plans: list[Plan]
    results: Results
    mark: Path | None = None
    """A new file, which the first step makes beside the plans; None in a job of an executor."""
    request: Request = field(default_factory=Request)
    """What the start was asked for."""

    @cached_property
    def selection(self) -> Selection:
        """The configuration of the start, checked."""
        return read_selection(self.request.config)

    @cached_property
    def waiting(self) -> list[str]:
        """The studies with a ladder whose length was not chosen when this start found them: a job
        does, before any block. None in a job of an executor, which plans nothing."""
        if self.mark is None:
            return []
        return [
            plan.name
            for plan in self.plans
            if plan.study.ladder and length_of(plan.name, self.results) is None
        ]

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
        apart = self.request.on_other_machines
        blocks = chain(*(blocks_of(plan, self.results, apart) for plan in self.plans))
        return {(block.study, block.name): block for block in blocks}

    @cached_property
    def pending(self) -> list[Block]:
        """The blocks that this start is to measure."""
        return [block for block in self.blocks.values() if block.missing(self.results)]

    @cached_property
    def unfit(self) -> list[Path]:
        """What was prepared and cannot be used."""
        found = list[Path]()
        for plan in self.plans:
            runs = chain(*(block.runs for block in self.pending if block.study == plan.name))
            found += outdated_preparation(plan, list(runs), self.results)
        return found

    @cached_property
    def outdated(self) -> set[Path]:
        """The files that are there and are to be made anew, as this start found them. No time of
        theirs counts, but for one ahead of the clock: Snakemake would take it for newer than
        whatever follows from it."""
        files = self.results
        found = set(self.unfit)
        stale = set(self.waiting)
        for block in self.blocks.values():
            path = files.block(block.study, block.name)
            if block.outdated:
                found.add(path)
            if block.outdated or not path.exists():
                stale.add(block.study)
        for plan in self.plans:
            study = plan.name
            if study in stale or _is_stale(
                files.made_of(study), made_of(plan.text, study, files), self._analysis(study)
            ):
                stale.add(study)
                found.add(files.fit(study))
        page = page_made_of(self.studies, files)
        if stale or _is_stale(files.report_made_of, page, [files.report]):
            found.add(files.report)
        return found

    def makes(self, path: str) -> bool:
        """Return whether a start makes a file: it is missing, or outdated."""
        return Path(path) in self.outdated or not os.path.lexists(path)

    @property
    def plan_files(self) -> list[Path]:
        """The files that the first step of this start writes."""
        plans = map(self.results.plan, self.studies)
        return [self.results.selection, *([self.mark] if self.mark else []), *plans]

    @property
    def targets(self) -> list[Path]:
        """Return all that a start is to leave. Where something is outdated the first step's mark is
        among it, for nothing else would be missing."""
        found = [self.results.report, *map(self.results.plan, self.studies), *self.analyses]
        if self.mark and self.outdated:
            found.append(self.mark)
        if self.unmeasured:
            found.append(self.results.devices)
        blocks = [self.results.block(*key) for key in self.blocks if key[0] not in self.waiting]
        return [*found, *(path for path in blocks if not path.exists())]

    @property
    def analyses(self) -> list[Path]:
        """What the analysis of each study makes."""
        return list(chain.from_iterable(map(self._analysis, self.studies)))

    def _analysis(self, study: str) -> list[Path]:
        files = self.results
        tables = [files.timings(study), files.epochs(study)]
        return [files.fit(study), *tables, files.figures(study)]

    @property
    def unmeasured(self) -> str:
        """Which of the devices that the start names measures nothing here, and why; empty where
        each does, and where a study names its own."""
        named = self.selection.devices
        made = chain.from_iterable(block.runs for block in self.blocks.values())
        there = {run.settings.device for run in made}
        told = []
        for device in () if named == "auto" else named:
            if device not in there:
                planned = chain.from_iterable(plan.runs for plan in self.plans)
                why = [run.unavailable for run in planned if run.settings.device == device]
                told.append(
                    f"error: devices: {device} is named, and measures nothing here: "
                    f"{why[0] if why else 'no run of it is planned'}"
                )
        return "\n".join(map(printable, told))

    def inputs(self, study: str) -> list[Path]:
        """Return the paths of the blocks that the analysis of ``study`` reads.

        Snakemake calls a step failed whose input is dated in the future.
        """
        paths = [self.results.block(*key) for key in self.blocks if key[0] == study]
        return [path for path in paths if not is_ahead(path)]

    def preparation(self, study: str, block: str | None = None) -> list[Path]:
        """Return the paths of the plan and of every image, environment, manifest and decision about
        weights that a block of ``study`` needs, or the study.

        Where nothing is to be measured, those that are there: Snakemake would make what is missing.
        A block that is to be measured waits for the mark of this start, too: a plan may be there.
        """
        plan = self.plan(study)
        files = self.results
        found = self.blocks.get((study, block)) if block else None
        runs = [run for run in (found.runs if found else plan.runs) if not run.unavailable]
        paths = [files.plan(study)]
        if plan.engine != "none":
            paths += map(files.image, dict.fromkeys(run.image for run in runs))
        names = dict.fromkeys(run.environment for run in runs)
        paths += [files.environment(name) for name in names if name]
        names = dict.fromkeys(run.dataset for run in runs)
        paths += [files.manifest(name) for name in names if name]
        names = dict.fromkeys(run.weights for run in runs)
        paths += [files.weights(study, name) for name in names if name]
        wanted = [path for path in paths if not is_ahead(path)]
        if block and not (found and (found.outdated or found.missing(files))):
            wanted = [path for path in wanted if path.exists()]
        elif self.mark and paths[0].exists():
            wanted.append(self.mark)
        return wanted

    def step_image(self, study: str) -> list[Path]:
        """Return the path of the image that prepares the data and weights of ``study``."""
        plan = self.plan(study)
        image = None if plan.engine == "none" else plan.preparing_image()
        return [self.results.image(image)] if image else []

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
        for nothing, or 0 where Snakemake takes numbers alone."""
        nothing = 0 if name in ("mem_mb", "runtime") else None
        found, known = self.blocks.get((study, block)), scheduler()
        if not found or not known:
            return nothing
        asked = known.requested_resources(
            [run.settings for run in found.runs], self.selection.machines
        )
        return asked[name] or nothing

    def foretold(self) -> str:
        """Return what a start will do, in lines, for Snakemake's words about its first step."""
        budget = self.selection.time_budget_minutes
        lines = forecast.describe(self.plans, budget, self.results)
        for study in self.waiting:
            lines.append(f"{study}: its length is not chosen yet: at most as above")
        return "\n".join(map(printable, lines))

    def hold(self) -> None:
        """Lock the results until this process ends. Exit with an error if another start has."""
        self.results.root.mkdir(parents=True, exist_ok=True)
        try:
            HELD.append(lock_results(self.results.root))
        except StudyError as error:
            sys.exit(f"error: {error}")

    def start_fork_servers(self) -> None:
        """Start the processes from which the runs of this start are forked."""
        runs = []
        for block in () if self.request.on_other_machines else self.pending:
            runs += [(block.study, run.name) for run in block.runs]
        start_fork_servers(self.plans, runs, self.results)

    def check_answers(self) -> None:
        """End the start with an error where all runs of a study have failed; its page says of
        what."""
        files = self.results
        for plan in self.plans:
            now, fit = made_of(plan.text, plan.name, files), files.fit(plan.name)
            # A target such as an image leaves an analysis behind, or makes none.
            if _is_stale(files.made_of(plan.name), now, [fit]):
                continue
            answers = json.loads(fit.read_text(encoding="utf-8"))["answers"]
            if all(one["kind"] == "nothing_succeeded" and one["made"] for one in answers):
                sys.exit(f"error: {plan.name}: no run has succeeded")

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


REFUSED = {
    "--containerize": "docker/Dockerfile is the source of the images; to build them: make images",
    "--generate-unit-tests": "no measurement is the same twice; this workflow's own: make test",
}
"""Flags of Snakemake's that would write what cannot work."""


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
    places = [str(base), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))


HELD: list[object] = []
"""The lock of a start: the kernel frees it when its process ends."""


def plans_for(request: Request, studies: Sequence[Path], results: Path) -> list[Plan]:
    """Return the plans of a start on this machine. Raise :class:`StudyError` if one cannot be made.

    ``studies`` are the folders of their files. ``results`` may hold earlier plans: a run whose
    device is absent keeps its number of processes from there, or its record would not be found.
    Where an executor makes the runs, every device counts as there.
    """
    selection, on_other_machines = read_selection(request.config), request.on_other_machines
    read = {}
    # Before any engine is asked, so that errors come first.
    for called in dict.fromkeys(selection.studies):
        name = study_name(called)
        if name in read:
            raise StudyError(
                key="studies",
                value=called,
                why="another one has its name",
                allowed="each name once",
            )
        length = length_of(name, Results(results))
        read[name] = read_study(called, studies, selection, length.rung if length else None)
    choice = choose_engine(selection, on_other_machines)
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
        check_images(plans)
    command = _command(selection, request.arguments)
    return [plan.model_copy(update={"start": command}) for plan in plans]


def _command(selection: Selection, arguments: Sequence[str]) -> StartCommand:
    """Return what a start was called with, as far as it decides what runs and where."""
    kept = selection.model_dump(
        mode="json", exclude_defaults=True, exclude={"studies", "time_budget_minutes"}
    )
    called = Path(next(iter(arguments), ""))
    program = "study" if "study" in (called.name, called.parent.name) else "snakemake"
    files = {
        study_name(called): called for called in selection.studies if called != study_name(called)
    }
    return StartCommand.model_validate(
        {"program": program, "files": files, "options": options_of(arguments[1:]), "config": kept}
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
    return Workflow(plans, layout, request=Request(config=config, on_other_machines=True))


def planned(request: Request, studies: Sequence[Path], results: Path) -> Workflow:
    """Return the workflow of a start, as :func:`plans_for` plans it. Nothing is written.

    Raise :class:`StudyError` for a flag of Snakemake's that would write what cannot work.
    """
    for word in request.arguments:
        if why := REFUSED.get(word.partition("=")[0]):
            raise StudyError(f"{word}: {why}")
    plans, files = plans_for(request, studies, results), Results(results)
    earlier = [int(path.name.rpartition("-")[2]) for path in results.glob(".start-*[0-9]")]
    if results.exists() and not (os.access(results, os.W_OK) or DRY_RUN & {*request.arguments}):
        raise StudyError(
            f"{files.lock.absolute()}: the results folder cannot be written (it is read-only)"
        )
    return Workflow(plans, files, files.start(1 + max(earlier, default=0)), request)


def begin(told: str, results: Path, say: Callable[[str], None]) -> None:
    """Take the first step of a start: remove what an earlier one left at work, and write the plans
    and what is the same in every run.

    ``told`` is the request of its :class:`Workflow`, in JSON. ``say`` gets the warnings. Raise
    :class:`StudyError` if the runs cannot be made here.
    """
    began = time.time()
    flow = planned(Request.of_text(told), study_folders(), results)
    lifetime.sweep(results)
    for path in flow.unfit:
        say(f"{path}: it cannot be used, and is made again")
    if flow.pending and not flow.request.on_other_machines:
        for plan in flow.plans:
            check_training_stack(plan)
        for line in warnings(flow.plans):
            say(line)
    write_plans(flow.plans, results)
    for plan in flow.plans:
        flow.results.records(plan.name).mkdir(parents=True, exist_ok=True)
        if forecast.pending(plan, flow.results):
            forecast.note(plan, flow.selection, began, flow.results)
    for path in results.glob(".start-*"):
        path.unlink()
    Path(str(flow.mark)).touch()


def chosen(flow: Workflow, studies: Sequence[Path]) -> Workflow:
    """Return the workflow of a start whose jobs have chosen the length of a study: it is planned
    again."""
    plans = plans_for(flow.request, studies, flow.results.root)
    write_plans(plans, flow.results.root)
    return replace(flow, plans=plans)


def _is_stale(note: Path, expected: str, outputs: Sequence[Path]) -> bool:
    """Return whether an output is missing or ahead of the clock, or was made of something else than
    ``expected``."""
    kept = note.read_text(encoding="ascii", errors="replace") if note.is_file() else None
    return kept != expected or any(not path.exists() or is_ahead(path) for path in outputs)
