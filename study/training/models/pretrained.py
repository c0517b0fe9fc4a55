"""Where a network's weights come from: ImageNet, a file, or a seed."""

import os
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import nn

from study.artifacts.prepared import Weights
from study.base.errors import StudyError
from study.base.files import file_sha256
from study.config.sections import is_own
from study.training.models import own
from study.training.models.build import State, body_sha256, body_state, build, shapes

TENSORS_ALONE = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""torch's variable by which a file is read as tensors alone, whatever its reader asks for."""


def read_state(path: Path) -> State:
    """Return the state dict in a file. Code in the file is never run."""
    try:
        state: Any
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken file can raise nearly anything
        raise StudyError(
            f"model.weights: {path.name!r} is not a weights file ({error.__class__.__name__}); "
            "allowed: a state dict saved by torch.save, or safetensors"
        ) from None
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    if (
        not isinstance(state, dict)
        or not state
        or not all(isinstance(v, torch.Tensor) for v in state.values())
    ):
        raise StudyError(
            f"model.weights: {path.name!r} is not a state "
            "dict; allowed: a dict of names and tensors"
        )
    return state


def decide(
    name: str,
    requested: str,
    seed: int,
    hub: Path,
    without: str | None = None,
    /,
    *,
    classes: int = 2,
    channels: int = 3,
    image_size: int | None = None,
) -> Weights:
    """Return the source of the weights of ``name``: those in ``hub``, read from a file, or random.

    If ``imagenet`` weights are unavailable the decision is random weights, with the reason:
    ``without`` is why the host could not bring them. The model is built once for the images and
    classes at hand: a misfit is an error here, before any run.
    """
    path = None if requested in ("none", "imagenet") else Path(requested).expanduser()
    state = read_state(path) if path else None
    # An unknown name is a separate error, not a failed download.
    model = build(
        name, classes=classes, channels=channels, image_size=image_size, seed=seed, state=state
    )
    body = body_sha256(body_state(model, name))
    parts = dict(model.named_parameters())
    fixed = sum(not parameter.requires_grad for parameter in parts.values())
    frozen = f"; {fixed} of {len(parts)} parameters stay frozen, as the model says" if fixed else ""
    random = Weights(
        model=name,
        requested=path.name if path else requested,
        kind="random",
        file=None,
        sha256=None,
        body_sha256=body,
        reason=f"random weights were asked for{frozen}",
        parameters=shapes(model) if is_own(name) else None,
    )
    if requested == "none":
        return random
    if path:
        head = (
            ", which does not fit the head"
            if state and is_own(name) and own.unfit(model, name, state)
            else ""
        )
        reason = f"a weights file was given{head}{frozen}"
        given = {"kind": "file", "file": path.name, "sha256": file_sha256(path), "reason": reason}
        return random.model_copy(update=given)
    path = imagenet_file(name, hub)
    if without or not path.is_file():
        why = without or f"this torchvision asks for {path.name}, which is not there"
        reason = f"ImageNet weights are not available: {why}"
        return random.model_copy(update={"reason": reason})
    state = imagenet_model(name, hub).state_dict()
    body = body_sha256(body_state(build(name, classes=classes, seed=seed, state=state), name))
    found = {
        "kind": "imagenet",
        "file": path.name,
        "sha256": file_sha256(path),
        "body_sha256": body,
        "reason": "torchvision's ImageNet weights",
    }
    return random.model_copy(update=found)


def imagenet_model(name: str, hub: Path) -> nn.Module:
    """Return torchvision's model with its default weights from ``hub``. torchvision's builder can
    read old files.

    The file is read as tensors alone, which its builder does not ask for.
    """
    import torchvision.models

    before, forced = torch.hub.get_dir(), os.environ.get(TENSORS_ALONE)
    torch.hub.set_dir(str(hub))
    os.environ[TENSORS_ALONE] = "1"
    try:
        model: nn.Module = torchvision.models.get_model(name, weights="DEFAULT")
    except UnpicklingError:
        raise StudyError(
            f"model.name: {name}: the file of its weights holds more than tensors"
        ) from None
    finally:
        torch.hub.set_dir(before)
        del os.environ[TENSORS_ALONE]
        if forced is not None:
            os.environ[TENSORS_ALONE] = forced
    return model


def imagenet_file(name: str, hub: Path) -> Path:
    """Return the path in ``hub`` of torchvision's default weights."""
    import torchvision.models

    address: str = torchvision.models.get_model_weights(name).DEFAULT.url
    return hub / "checkpoints" / address.rpartition("/")[2]
