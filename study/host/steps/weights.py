"""The weights step: the decision about the source of one model's weights, once per study. It also tries the model."""

import os
import sys
from pathlib import Path
from typing import Protocol

from study.artifacts.layout import Results
from study.artifacts.plan import Plan, read_plan
from study.artifacts.prepared import Weights, read_weights
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.base.files import write_if_changed
from study.config.sections import Limits
from study.config.settings import Settings
from study.data.sources import look
from study.host.engine.container import environment
from study.host.engine.lifetime import End, timed_out
from study.host.forked import begin, template_of
from study.host.steps.in_image import Task, arguments, failure, in_a_logged_container, trial_limits, weights_task
from study.host.supervise import supervise


class Decide(Protocol):
    """The training side's ``study.training.models.pretrained.decide``, which the host side does not import."""

    def __call__(
        self, name: str, requested: str, seed: int, hub: Path, *, classes: int, channels: int, image_size: int | None
    ) -> Weights:
        """Return the source of the weights of the model ``name``."""


def prepare(plan_file: Path, weights: str, results: Path, log: Path | None) -> str:
    """Have the decision ``weights`` of the plan made in a process of its own, and return a line about it.

    A user's model may exit, hang or be killed there. The process is a container where one serves. Its output goes to
    ``log``, by default a file in ``results``.
    """
    plan, files = read_plan(plan_file), Results(results)
    run = _smallest(plan, weights)
    task = weights_task(plan.name, weights, run.settings.model.name)
    log = log or files.log(plan.name, "weights", weights)
    if plan.engine == "none":
        _on_the_host(task, plan_file, results, log, run.settings)
    else:
        in_a_logged_container(task, plan, run, results, log)
    target = files.weights(plan.name, weights)
    if not target.exists():
        raise StudyError(f"model.name: {run.settings.model.name!r} ended the process that tried it; see {log.name}")
    decision = read_weights(target)
    return f"weights of {decision.model}: {decision.kind} ({decision.reason})"


def _on_the_host(task: Task, plan_file: Path, results: Path, log: Path, settings: Settings) -> None:
    limits = trial_limits(settings.limits) if task.runs_own_code else Limits()
    seconds = limits.timeout_seconds
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        words = arguments(task, plan_file, results)
        if limits.memory_gib:
            words += ["--memory-bytes", str(int(limits.memory_gib * 2**30))]
        command = [sys.executable, "-m", "study", *words]
        process = begin(template_of(settings), "study.cli:step", words, command, environment("cpu", os.environ))
        ended = supervise(process, file, f"weights {task.name}", seconds)
    if ended.code:
        trouble = timed_out(seconds) if ended.timed_out else None
        raise StudyError(failure(End(ended.code, False, trouble), ended.tail))


def decide_here(plan_file: Path, weights: str, results: Path, decide: Decide) -> None:
    """Make the decision ``weights`` of the plan in this process, and write it."""
    plan, files = read_plan(plan_file), Results(results)
    run = _smallest(plan, weights)
    decision = _decided(decide, run.settings, files.hub)
    write_if_changed(files.weights(plan.name, weights), decision.model_dump_json(indent=1))


def _smallest(plan: Plan, weights: str) -> Run:
    """Return the run with the smallest images: a network may be too deep for those."""
    return min(plan.runs_with("weights", weights), key=lambda run: run.settings.dataset.image_size)


def _decided(decide: Decide, settings: Settings, hub: Path) -> Weights:
    model, images = settings.model, settings.dataset
    return decide(
        model.name,
        model.weights,
        settings.seed,
        hub,
        classes=look(images).classes,
        channels=images.channels,
        image_size=images.image_size,
    )
