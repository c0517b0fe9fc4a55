"""What a run needs is prepared: its data, the decision about its weights, its image.

The data are checked a second time once every image was opened, and the step of the weights also
tries the model. Weights, and data that the training stack opens, are made in a container where one
serves: it sees what the host downloaded, and cannot write it; and of what it writes into a scratch
folder, only what the step may leave is taken. A step that runs a user's model has a memory limit
and a time limit.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psutil
from filelock import FileLock

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.prepared import Image, Manifest, Weights
from study.artifacts.run import Run
from study.base import devices
from study.base.errors import StudyError, say
from study.base.files import PACKAGE, room_for, whole
from study.base.privacy import anonymous
from study.base.strict_yaml import read_mapping
from study.config.sections import Limits, is_own
from study.config.settings import Settings
from study.data.sources import Download, given_folder, inspect, not_obtained, source_of
from study.data.splits import check_batch_size
from study.host.engine import bring, container, lifetime
from study.host.engine.container import (
    Mount,
    check_visible,
    code_mount,
    environment,
    own_mounts,
    settings_inside,
)
from study.host.engine.engine_choice import engine
from study.host.fork_servers import begin, fork_server_of
from study.host.steps.left import open_to_all, take, without_result
from study.host.supervise import Ended, new_log, supervise

TRY_SECONDS = 600.0
"""Shortest time limit of the trial of a user's own model. Its study may set a longer one for its
runs."""
OWN_SHARE = 0.75
"""Share of the machine's memory that this trial may use, if its study sets no limit."""
IMAGENET = PACKAGE / "data" / "imagenet.yaml"
"""The file of torchvision's default weights of each model."""
IMAGENET_SERVER = "https://download.pytorch.org/models/"


class Task(NamedTuple):
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


def prepare_dataset(plan_file: Path, dataset: str, results: Path, log: Path | None) -> str:
    """Make the data of ``dataset``, here or in a container, and return a line about them.

    A container's output goes to ``log``, by default a file in ``results``.
    """
    plan, files = Plan.read(plan_file), Results(results)
    wanted = plan.runs_with("dataset", dataset)[0].settings.dataset
    source = source_of(wanted)
    results.mkdir(parents=True, exist_ok=True)
    # One download of a source at a time: the next step reuses what this one brought.
    with (
        FileLock(files.download_lock(wanted.source), mode=0o600)
        if source.downloads
        else nullcontext()
    ):
        if not wanted.path:
            try:
                for one in source.downloads:
                    one.bring(files.downloads)
            except StudyError as error:
                raise not_obtained(wanted, str(error)) from None
        if plan.engine != "none" and source.in_the_image:
            made = _made_inside(plan, dataset, results, log or files.log("data", dataset))
        else:
            made = make_dataset(plan, dataset, results)
    with_fastai = any(
        run.settings.training.loop == "fastai" for run in plan.runs_with("dataset", dataset)
    )
    return "; ".join(made.said(with_fastai))


def _made_inside(plan: Plan, dataset: str, results: Path, log: Path) -> Manifest:
    """Make the data in the image of the runs, and return the manifest once it fits every run of the
    plan."""
    runs, path = plan.runs_with("dataset", dataset), Results(results).manifest(dataset)
    wanted = runs[0].settings.dataset
    source = source_of(wanted)
    if files := source.inspect(wanted).files:
        seen = [name for name, _ in files]
        check_visible(given_folder(str(wanted.path)), seen, not os.getuid())
    in_a_container(dataset_task(dataset, bool(source.downloads)), plan, runs[0], results, log)
    manifest = Manifest.read(path)
    try:
        _check_batches(plan, runs, manifest)
    except StudyError:
        path.unlink()  # a manifest that is there is one that the runs can use
        raise
    return manifest


def _check_batches(plan: Plan, runs: Iterable[Run], manifest: Manifest) -> None:
    for run in runs:
        check_batch_size(run.settings, manifest.train_images, plan.name)


def make_dataset(plan: Plan, dataset_id: str, results: Path) -> Manifest:
    """Make the data of one dataset of the plan here, write its manifest last, and return it."""
    runs = plan.runs_with("dataset", dataset_id)
    dataset, target = runs[0].settings.dataset, Results(results).data(dataset_id)
    with room_for(target):
        manifest = source_of(dataset).make(dataset, target, results)
    _check_batches(plan, runs, manifest)
    manifest.write(Results(results).manifest(dataset_id))
    return manifest


def prepare_weights(plan_file: Path, weights: str, results: Path, log: Path | None) -> str:
    """Have the decision ``weights`` of the plan made in a process of its own, and return a line
    about it.

    A user's model may exit, hang or be killed there. The process is a container where one serves.
    Its output goes to ``log``, by default a file in ``results``.
    """
    plan, files = Plan.read(plan_file), Results(results)
    # A network may be too deep for the smallest images.
    run = min(plan.runs_with("weights", weights), key=lambda run: run.settings.dataset.image_size)
    model = run.settings.model
    without = None
    if model.weights == "imagenet":
        try:
            bring_imagenet(model.name, files.hub)
        except StudyError as error:
            without = anonymous(str(error))
    task = weights_task(plan.name, weights, model.name, without)
    log = log or files.log(plan.name, "weights", weights)
    if plan.engine == "none":
        _decided_on_the_host(task, plan_file, results, log, run.settings)
    else:
        in_a_container(task, plan, run, results, log)
    target = files.weights(plan.name, weights)
    if not target.exists():
        raise StudyError(
            f"model.name: {model.name!r} ended the process that tried it; see {log.name}"
        )
    decision = Weights.read(target)
    return f"weights of {decision.model}: {decision.kind} ({decision.reason})"


def bring_imagenet(model: str, hub: Path) -> None:
    """Bring the file of torchvision's default weights into ``hub``, from torch's own cache where it
    is there.

    Raise :class:`StudyError` if it cannot be had.
    """
    name = read_mapping(IMAGENET).get(model)
    if name is None:
        raise StudyError(f"torchvision has none for {model!r}")
    # Its name ends with the first digits of its checksum.
    checksum = Path(name).stem.rpartition("-")[2]
    wanted = Download(f"checkpoints/{name}", IMAGENET_SERVER + name, "sha256", checksum)
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = Path(os.environ.get("TORCH_HOME") or f"{caches}/torch").expanduser()
    target = hub / wanted.path
    cached = home / "hub" / wanted.path
    if not wanted.fits(target) and wanted.fits(cached):
        with whole(target) as temporary:
            shutil.copyfile(cached, temporary)
    wanted.bring(hub)


def _decided_on_the_host(
    task: Task, plan_file: Path, results: Path, log: Path, settings: Settings
) -> None:
    limits = trial_limits(settings.limits) if task.runs_own_code else Limits()
    with new_log(log) as file:
        words = arguments(task, plan_file, results)
        if limits.memory_gib:
            words += ["--memory-bytes", str(int(limits.memory_gib * 2**30))]
        command = [sys.executable, "-m", "study", *words]
        here = settings.model_copy(update={"environment": None})
        process = begin(
            fork_server_of(here), "study.cli:step", words, command, environment("cpu", os.environ)
        )
        ended = supervise(process, file, f"weights {task.name}", limits.timeout_seconds)
    if ended.code:
        raise StudyError(failure(ended))


def decide_weights(
    plan_file: Path,
    weights: str,
    results: Path,
    decide: Callable[..., Weights],
    without: str | None = None,
) -> None:
    """Make the decision ``weights`` of the plan in this process, and write it.

    ``decide`` is the training side's :func:`study.training.trial.decide_and_try`, which this side
    does not import. ``without`` is the reason why ImageNet's weights could not be had.
    """
    plan, files = Plan.read(plan_file), Results(results)
    runs = [run.settings for run in plan.runs_with("weights", weights)]
    found = cache(inspect)
    known = [(one, found(one.dataset)) for one in runs]
    decide(known, files.hub, without).write(files.weights(plan.name, weights))


def prepare_image(plan_file: Path, name: str, results: Path, log: Path | None) -> str:
    """Build, load or pull the image that the plan has under ``name``, describe it, and return a
    line about it.

    The engine's output goes to ``log``, by default a file in ``results``.
    """
    plan, files = Plan.read(plan_file), Results(results)
    if plan.engine == "none":
        raise StudyError(
            f"images: runs execute on the host ({plan.engine_reason}), which needs no image"
        )
    if name not in plan.images:
        raise StudyError(
            f"image: {plan.name} has no image {name!r}; allowed: {', '.join(plan.images)}"
        )
    wanted = plan.images[name]
    minutes = " (a first build takes minutes)" if wanted.kind == "built" else ""
    say(f"image {name}: {wanted.reference}{minutes}")
    with new_log(log or files.log("images", name)) as file:
        gpu = wanted.device == "cuda" and devices.absent("cuda") is None
        for_commands = plan.study.command is not None
        made = bring.make(engine(plan.engine), wanted, results, file, gpu, for_commands)
    made.write(files.image(name))
    how = f"built in {made.build_seconds:.0f} s" if made.build_seconds else "already there"
    note = engine(plan.engine).gpu_note() if gpu else None
    words = f"image {name}: {made.id[:19]}, {how}, Python {made.python}"
    return f"{words}; {note}" if note else words


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
        open_to_all(inside)
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
