"""The steps that need the training stack, in a container: weights, and data that it opens.

What the host downloaded is seen, and cannot be written. A step that runs a user's model has a
memory limit and a time limit. Each writes into a scratch folder, from which only what it may leave
is taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.prepared import Image
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.config.sections import Limits, is_own
from study.host.engine import container, lifetime
from study.host.engine.container import Mount, code_mount, own_mounts, settings_inside
from study.host.engine.engine_choice import engine
from study.host.steps.left import take, without_result
from study.host.supervise import Ended, new_log

TRY_SECONDS = 600.0
"""Shortest time limit of the trial of a user's own model. Its study may set a longer one for its
runs."""
OWN_SHARE = 0.75
"""Share of the machine's memory that this trial may use, if its study sets no limit."""


@dataclass(frozen=True)
class Task:
    """One step in a container: its verb and name, what it sees and what it may leave, relative to
    ``results``."""

    verb: str
    name: str
    seen: Path
    left: Sequence[Path]
    runs_own_code: bool = False
    """Whether code of the user runs: it gets less of the machine."""
    without: str | None = None
    """Why the weights that were asked for could not be had."""


def dataset_task(dataset: str, unpacks: bool) -> Task:
    """Return the step that makes a dataset: it unpacks, opens a user's files, or needs the image's
    packages."""
    files = Results(Path())
    left = [files.data(dataset)]
    if unpacks:
        left.append(files.unpacked)
    return Task("dataset", dataset, files.downloads, left)


def weights_task(study: str, weights: str, model: str, without: str | None = None) -> Task:
    """Return the step that decides about the weights of a model."""
    files = Results(Path())
    left = [files.weights(study, weights)]
    return Task("weights", weights, files.hub, left, is_own(model), without)


def in_a_container(task: Task, plan: Plan, run: Run, results: Path, log: Path) -> None:
    """Execute ``task``, one dataset or weights decision of ``plan``, in the image of its runs;
    write ``log`` anew.

    Raise :class:`StudyError` with the step's own message if it fails.
    """
    image = Image.read(Results(results).image(plan.preparing_image() or run.image))
    settings, mounts = settings_inside(run.settings)
    runs = [
        one
        for one in plan.runs_with("weights", run.weights)
        if one.settings.dataset.path == run.settings.dataset.path
    ]
    inner = [one.model_copy(update={"settings": settings_inside(one.settings)[0]}) for one in runs]
    small = plan.model_copy(update={"engine": "none", "images": {}, "runs": inner})
    with lifetime.scratch_folder(results) as scratch, new_log(log) as file:
        inside = scratch / "results"
        seen = results / task.seen
        (inside / task.seen).mkdir(parents=True)
        plan_file = Results(inside).plan(plan.name)
        plan_file.parent.mkdir(parents=True, exist_ok=True)
        plan_file.write_text(small.model_dump_json(), encoding="utf-8")
        plan_file.chmod(0o644)
        for folder in (path for path in [inside, *inside.rglob("*")] if path.is_dir()):
            folder.chmod(0o777)  # the user inside may be another
        at = Results(Path(container.SCRATCH, "results"))
        shown = [code_mount(), *mounts]
        if seen.is_dir():
            shown.append(Mount(seen.resolve(), str(at.root / task.seen)))
        limits = Limits()
        if task.runs_own_code:
            shown += own_mounts(settings)
            limits = trial_limits(run.settings.limits)
        ended = lifetime.enter(
            engine(plan.engine),
            image.id,
            ["python", "-m", "study", *arguments(task, at.plan(plan.name), at.root)],
            scratch,
            shown,
            file,
            f"{task.verb} {task.name}",
            limits=limits,
        )
        if ended.code or ended.trouble:
            raise StudyError(failure(ended, limits.memory_gib))
        take(inside, results, task.left)


def arguments(task: Task, plan: Path, results: Path) -> list[str]:
    """Return the command line of the step where it does its work."""
    here = ["--here"] if task.verb == "weights" else []
    if task.without:
        here.append(f"--without={task.without}")
    return [task.verb, str(plan), task.name, "--results", str(results), *here]


def trial_limits(limits: Limits) -> Limits:
    """Return the limits of the trial of a user's model: those of its runs, and ours where these
    have none.

    A short time limit is one for runs: each that reaches it is a record. A trial that reached it
    would end the start.
    """
    memory_gib = limits.memory_gib or OWN_SHARE * psutil.virtual_memory().total / 2**30
    seconds = max(limits.timeout_seconds or 0.0, TRY_SECONDS)
    return limits.model_copy(update={"timeout_seconds": seconds, "memory_gib": memory_gib})


def failure(ended: Ended, memory_gib: float | None = None) -> str:
    """Return the step's own error line, or how its process ended, at which limit of memory, and its
    last words."""
    errors = [line.removeprefix("error: ") for line in ended.tail if line.startswith("error: ")]
    if errors:
        return errors[-1]
    return str(without_result(ended, memory_gib).message)
