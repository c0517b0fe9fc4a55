"""Networks by name, the decision where their weights come from, and what is body and what is head. Imports torch."""

import difflib
import hashlib
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
import torchvision.models
from torch import nn

from study.errors import StudyError
from study.fingerprint import file_sha256
from study.privacy import anonymous
from study.weights import Weights

State = Mapping[str, torch.Tensor]
# The first two return a tuple in training; the head of the others is no linear layer.
WITHOUT_PLAIN_HEAD = ("googlenet", "inception_v3", "squeezenet1_0", "squeezenet1_1")
DOWNLOAD_TIMEOUT_SECONDS = 20


def available() -> list[str]:
    """Names of the models that can be chosen."""
    names = torchvision.models.list_models(module=torchvision.models)
    return [name for name in names if name not in WITHOUT_PLAIN_HEAD]


def backbone(name: str, seed: int, state: State | None = None) -> nn.Module:
    """The model as torchvision has it, with ``state`` or with random weights from ``seed``.

    Raises :class:`StudyError` where the name is unknown or the state belongs to another model.
    """
    if name not in available():
        near = difflib.get_close_matches(name, available(), 5) or ["resnet18", "resnet34", "resnet50"]
        raise StudyError(f"model.name: {name!r} is not allowed: no such model; near: {', '.join(near)}")
    torch.manual_seed(seed)
    model: nn.Module = torchvision.models.get_model(name, weights=None)
    if state is not None:
        _load_body(model, name, state)
    return model


def _load_body(model: nn.Module, name: str, state: State) -> None:
    """Load all but the head, which is replaced anyway and may be for other classes."""
    head = head_name(model)
    own = model.state_dict()
    body = {key: value for key, value in state.items() if not key.startswith(f"{head}.")}
    wanted = {key for key in own if not key.startswith(f"{head}.")}
    # torch itself accepts files from before batches were counted.
    counters = {key for key in wanted if key.endswith("num_batches_tracked")}
    for key in sorted((wanted ^ set(body)) - counters):
        trouble = "is missing" if key in wanted else "is not part of it"
        raise StudyError(f"model.weights: the file is not for {name}: {key} {trouble}")
    for key in sorted(wanted & set(body)):
        if own[key].shape != body[key].shape:
            raise StudyError(
                f"model.weights: the file is not for {name}: {key} has shape {tuple(body[key].shape)}, "
                f"allowed: {tuple(own[key].shape)}"
            )
    model.load_state_dict(body, strict=False)


def head_name(model: nn.Module) -> str:
    """The dotted name of the classifying layer: the last linear one."""
    names: list[str] = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    return names[-1]


def with_new_head(model: nn.Module, classes: int, seed: int) -> nn.Module:
    """The model with a linear head for ``classes``, random from ``seed``."""
    parent_name, _, leaf = head_name(model).rpartition(".")
    parent = model.get_submodule(parent_name)
    old = getattr(parent, leaf) if not leaf.isdigit() else parent[int(leaf)]  # type: ignore[index]
    torch.manual_seed(seed)
    new = nn.Linear(old.in_features, classes)
    if leaf.isdigit():
        parent[int(leaf)] = new  # type: ignore[operator]
    else:
        setattr(parent, leaf, new)
    return model


def body_sha256(state: State) -> str:
    """Checksum over the tensors of a body in their order; names do not count, they differ between loops."""
    total = hashlib.sha256()
    for tensor in state.values():
        total.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def body_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """The tensors of all but the head."""
    head = head_name(model)
    return {key: value for key, value in model.state_dict().items() if not key.startswith(f"{head}.")}


def read_state(path: Path) -> State:
    """The state dict in a file; code in it is never run."""
    try:
        state: Any
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a broken file can raise nearly anything
        raise StudyError(
            f"model.weights: {path.name!r} is no weights file ({error.__class__.__name__}); "
            "allowed: a state dict saved by torch.save, or safetensors"
        ) from None
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    if not isinstance(state, dict) or not state or not all(isinstance(v, torch.Tensor) for v in state.values()):
        raise StudyError(f"model.weights: {path.name!r} is no state dict; allowed: a dict of names and tensors")
    return state


def decide(name: str, requested: str, seed: int, hub: Path) -> Weights:
    """Where the weights of ``name`` come from: downloaded into ``hub``, read from a file, or random.

    Where ``imagenet`` cannot be had the answer is random weights, with the reason.
    """
    if requested == "none":
        return _random(name, requested, seed, "random weights were asked for")
    if requested != "imagenet":
        path = Path(requested).expanduser()
        model = backbone(name, seed, read_state(path))
        return _from_file(name, path.name, "file", path, model, "a weights file was given")
    backbone(name, seed)  # an unknown name is an error of its own, not a failed download
    try:
        path = fetch_imagenet(name, hub)
        model = imagenet_model(name, hub)
    except (OSError, RuntimeError, ValueError) as error:
        said = str(getattr(error, "reason", None) or error).strip() or error.__class__.__name__
        reason = anonymous(said.splitlines()[0])
        return _random(name, requested, seed, f"ImageNet weights could not be had: {reason}")
    return _from_file(name, requested, "imagenet", path, model, "torchvision's ImageNet weights")


def imagenet_model(name: str, hub: Path) -> nn.Module:
    """torchvision's model with its default weights from ``hub``: its own builder knows how to read old files."""
    before = torch.hub.get_dir()
    torch.hub.set_dir(str(hub))
    try:
        model: nn.Module = torchvision.models.get_model(name, weights="DEFAULT")
    finally:
        torch.hub.set_dir(before)
    return model


def _random(name: str, requested: str, seed: int, reason: str) -> Weights:
    checksum = body_sha256(body_state(backbone(name, seed)))
    return Weights(
        model=name, requested=requested, kind="random", file=None, sha256=None, body_sha256=checksum, reason=reason
    )


def _from_file(
    name: str, requested: str, kind: Literal["imagenet", "file"], path: Path, model: nn.Module, reason: str
) -> Weights:
    return Weights(
        model=name,
        requested=requested,
        kind=kind,
        file=path.name,
        sha256=file_sha256(path),
        body_sha256=body_sha256(body_state(model)),
        reason=reason,
    )


def fetch_imagenet(name: str, hub: Path) -> Path:
    """torchvision's default weights in ``hub/checkpoints``: from torch's own cache, or downloaded and checked."""
    weights = torchvision.models.get_model_weights(name).DEFAULT
    file_name = weights.url.rsplit("/", 1)[-1]
    target: Path = hub / "checkpoints" / file_name
    prefix = target.stem.rsplit("-", 1)[-1]  # torchvision's file names end in the start of their checksum
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
