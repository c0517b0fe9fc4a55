"""The weights step: the decision about the source of one model's weights, once per study."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from study.artifacts.layout import Results
from study.artifacts.plan import read_plan
from study.artifacts.weights import Weights, read_weights
from study.base.files import write_if_changed
from study.config.settings import Settings
from study.data.sources import look
from study.host.steps.in_image import in_a_logged_container


class Decide(Protocol):
    """The training side's ``study.training.models.pretrained.decide``, which the host side does not import."""

    def __call__(
        self, name: str, requested: str, seed: int, hub: Path, *, classes: int, channels: int, image_size: int | None
    ) -> Weights:
        """Return the source of the weights of the model ``name``."""


def prepare(plan_file: Path, weights: str, results: Path, log: Path | None, training_side: Callable[[], Decide]) -> str:
    """Write the decision ``weights`` of the plan, made here or in a container, and return a line about it.

    ``training_side`` imports torch, and is called only where no container serves. A container's output goes to
    ``log``, by default a file in ``results``.
    """
    plan, files = read_plan(plan_file), Results(results)
    # The model is tried once, on the smallest images of the study: a network may be too deep for those.
    run = min(plan.runs_with("weights", weights), key=lambda run: run.settings.dataset.image_size)
    target = files.weights(plan.name, weights)
    if plan.engine == "none":
        decision = _decided(training_side(), run.settings, files.hub)
        write_if_changed(target, decision.model_dump_json(indent=1))
    else:
        in_a_logged_container("weights", plan, run, weights, results, log or files.log(plan.name, "weights", weights))
        decision = read_weights(target)
    return f"weights of {decision.model}: {decision.kind} ({decision.reason})"


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
