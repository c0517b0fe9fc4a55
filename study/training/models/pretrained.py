"""Where a network's weights come from: ImageNet, a file, or a seed."""

import os
import shutil
import socket
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import nn

from study.artifacts.prepared import Weights
from study.base.errors import StudyError, first_line
from study.base.files import file_sha256
from study.base.privacy import anonymous
from study.config.sections import is_own
from study.training.models import own
from study.training.models.build import State, body_sha256, body_state, build, shapes

DOWNLOAD_TIMEOUT_SECONDS = 20
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
    *,
    classes: int = 2,
    channels: int = 3,
    image_size: int | None = None,
) -> Weights:
    """Return the source of the weights of ``name``: downloaded into ``hub``, read from a file, or
    random.

    If ``imagenet`` weights are unavailable the decision is random weights, with the reason. The
    model is built once for the images and classes at hand: a misfit is an error here, before any
    run.
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
    try:
        path = fetch_imagenet(name, hub)
        state = imagenet_model(name, hub).state_dict()
    except (OSError, RuntimeError, ValueError) as error:
        message = first_line(getattr(error, "reason", None) or error) or error.__class__.__name__
        reason = f"ImageNet weights are not available: {anonymous(message)}"
        return random.model_copy(update={"reason": reason})
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


def fetch_imagenet(name: str, hub: Path) -> Path:
    """Return the file of torchvision's default weights in ``hub/checkpoints``, copied from torch's
    cache or downloaded.

    Either file is checked against the checksum in its name.
    """
    import torchvision.models

    weights = torchvision.models.get_model_weights(name).DEFAULT
    file_name = weights.url.rsplit("/", 1)[-1]
    target: Path = hub / "checkpoints" / file_name
    # torchvision's file names end with the first digits of the checksum
    prefix = target.stem.rsplit("-", 1)[-1]
    cached = Path(torch.hub.get_dir()) / "checkpoints" / file_name
    for path in (target, cached):
        if path.is_file() and file_sha256(path).startswith(prefix):
            if path != target:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
            return target
    target.unlink(missing_ok=True)
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(DOWNLOAD_TIMEOUT_SECONDS)
    try:
        weights.get_state_dict(model_dir=str(target.parent), check_hash=True, progress=False)
    finally:
        socket.setdefaulttimeout(before)
    return target
