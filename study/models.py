"""Networks by name, the decision about the source of their weights, and the parts body and head. Imports torch."""

import difflib
import hashlib
import importlib
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
import torchvision.models
from torch import nn

from study import networks
from study.errors import StudyError
from study.fingerprint import file_sha256
from study.networks import NETWORKS, UNFIT, is_own, is_transfer
from study.privacy import anonymous
from study.weights import Weights

State = Mapping[str, torch.Tensor]
DOWNLOAD_TIMEOUT_SECONDS = 20
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def build(
    name: str,
    *,
    classes: int,
    channels: int = 3,
    image_size: int | None = None,
    seed: int = 0,
    head_seed: int | None = None,
    state: State | None = None,
) -> nn.Module:
    """Return the model for ``classes``: a network of a document, a user's own by import path, or torchvision's.

    Its input is (n, c, size, size) float32, normalised, with c = :func:`input_channels`; its output is (n, classes).
    Both are tried once if an ``image_size`` is given. The body starts from ``state``, or random from ``seed``. The head
    starts random from ``head_seed`` (None: from ``seed``). Raise :class:`StudyError` if the name, the state or the
    images do not fit.
    """
    if image_size is not None and (trouble := networks.misfit(name, channels, image_size)):
        raise StudyError(trouble)
    if is_own(name):
        model = _own(name, classes, seed)
        if state is not None:
            _load(model, name, state, None)
    else:
        model = with_new_head(backbone(name, seed, state), classes, seed if head_seed is None else head_seed)
    if image_size is not None:
        _check_outputs(model, name, (input_channels(name, channels), image_size, image_size), classes)
    return model


def input_channels(name: str, channels: int) -> int:
    """Return the input channels of the model. torchvision models always take 3; grey images are repeated."""
    return 3 if is_transfer(name) else channels


def normalisation(name: str, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each input channel, for pixels in 0 to 1."""
    if is_transfer(name):
        return IMAGENET_MEAN, IMAGENET_STD
    network = NETWORKS.get(name)
    mean, std = (network.mean, network.std) if network else (0.5, 0.5)
    return (mean,) * channels, (std,) * channels


def _own(path: str, classes: int, seed: int) -> nn.Module:
    """Return the model that the user's factory makes, random from ``seed``."""
    module_name, _, attribute = path.partition(":")
    try:
        factory = getattr(importlib.import_module(module_name), attribute)
        torch.manual_seed(seed)
        model = factory(classes=classes)
    except Exception as error:  # a user's code can raise anything
        said = str(error).strip().splitlines() or [""]
        raise StudyError(
            f"model.name: {path!r} cannot be loaded ({error.__class__.__name__}: {anonymous(said[0])}); allowed: "
            "package.module:factory, importable from the folder where the study is started, called with classes=..."
        ) from None
    if not isinstance(model, nn.Module):
        raise StudyError(
            f"model.name: {path!r} made a {type(model).__name__} for classes={classes}; allowed: a torch.nn.Module"
        )
    return model


def _check_outputs(model: nn.Module, name: str, image: tuple[int, int, int], classes: int) -> None:
    """Raise :class:`StudyError` unless a model turns images (2, *``image``) into outputs (2, ``classes``)."""
    model.eval()
    try:
        with torch.no_grad():
            outputs = model(torch.zeros(2, *image))
    except Exception as error:
        said = str(error).strip().splitlines() or [error.__class__.__name__]
        raise StudyError(
            f"model.name: {name!r} fails on images of {' x '.join(map(str, image))}: {anonymous(said[0])}; allowed: a "
            "model and a dataset.image_size that fit each other"
        ) from None
    finally:
        model.train()
    shape = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs).__name__
    if shape != (2, classes):
        raise StudyError(
            f"model.name: {name!r} returns {shape} for two images, but the data have {classes} classes; "
            f"allowed: {(2, classes)}"
        )


def available() -> list[str]:
    """Return the names of the models that can be chosen; a user's own is named by its import path."""
    names = torchvision.models.list_models(module=torchvision.models)
    return [*NETWORKS, *(name for name in names if name not in UNFIT)]


def backbone(name: str, seed: int, state: State | None = None) -> nn.Module:
    """Return the model before its head is replaced, with ``state`` or with random weights from ``seed``.

    Raise :class:`StudyError` if the name is unknown or unfit, or the state belongs to another model.
    """
    if name in UNFIT:
        raise StudyError(
            f"model.name: {name!r} is not allowed: {UNFIT[name]}; allowed: torchvision's other classification models"
        )
    if name not in available():
        near = difflib.get_close_matches(name, available(), 5) or ["resnet18", "resnet34", "resnet50"]
        raise StudyError(
            f"model.name: {name!r} is not allowed: no such model; near: {', '.join(near)}; or a model of your own as "
            "package.module:factory"
        )
    torch.manual_seed(seed)
    make = networks.make if name in NETWORKS else torchvision.models.get_model
    model: nn.Module = make(name)
    if state is not None:
        _load(model, name, state, head_name(model))
    return model


def _load(model: nn.Module, name: str, state: State, head: str | None) -> None:
    """Load ``state`` without the ``head``, which is replaced anyway and may be for other classes; None loads all."""
    own = model.state_dict()
    body = {key: value for key, value in state.items() if not (head and key.startswith(f"{head}."))}
    wanted = {key for key in own if not (head and key.startswith(f"{head}."))}
    # torch itself accepts files from before batches were counted.
    counters = {key for key in wanted if key.endswith("num_batches_tracked")}
    for key in sorted((wanted ^ set(body)) - counters):
        trouble = "is missing" if key in wanted else "is not part of the model"
        raise StudyError(f"model.weights: the file is not for {name}: {key} {trouble}")
    for key in sorted(wanted & set(body)):
        if own[key].shape != body[key].shape:
            raise StudyError(
                f"model.weights: the file is not for {name}: {key} has shape {tuple(body[key].shape)}, "
                f"allowed: {tuple(own[key].shape)}"
            )
    model.load_state_dict(body, strict=False)


def head_name(model: nn.Module) -> str:
    """Return the dotted name of the classifying layer: the last linear one."""
    names: list[str] = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    return names[-1]


def with_new_head(model: nn.Module, classes: int, seed: int) -> nn.Module:
    """Return the model with a linear head for ``classes``, random from ``seed``."""
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
    """Return the checksum over the tensors of a body in their order. Names do not count: they differ between loops."""
    total = hashlib.sha256()
    for tensor in state.values():
        total.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()


def body_state(model: nn.Module, name: str) -> dict[str, torch.Tensor]:
    """Return the tensors of the model without its head; all tensors of a user's own model, whose head is not known."""
    state: dict[str, torch.Tensor] = model.state_dict()
    return state if is_own(name) else {key: state[key] for key in state if not key.startswith(f"{head_name(model)}.")}


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
    if not isinstance(state, dict) or not state or not all(isinstance(v, torch.Tensor) for v in state.values()):
        raise StudyError(f"model.weights: {path.name!r} is not a state dict; allowed: a dict of names and tensors")
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
    """Return the source of the weights of ``name``: downloaded into ``hub``, read from a file, or random.

    If ``imagenet`` weights are unavailable the decision is random weights, with the reason. The model is built once for
    the images and classes at hand: a misfit is an error here, before any run.
    """
    path = None if requested in ("none", "imagenet") else Path(requested).expanduser()
    state = read_state(path) if path else None
    # An unknown name is a separate error, not a failed download.
    model = build(name, classes=classes, channels=channels, image_size=image_size, seed=seed, state=state)
    body = body_sha256(body_state(model, name))
    if path:
        return _from_file(name, path.name, "file", path, body, "a weights file was given")
    if requested == "none":
        return _random(name, requested, body, "random weights were asked for")
    try:
        path = fetch_imagenet(name, hub)
        model = imagenet_model(name, hub)
    except (OSError, RuntimeError, ValueError) as error:
        said = str(getattr(error, "reason", None) or error).strip() or error.__class__.__name__
        reason = anonymous(said.splitlines()[0])
        return _random(name, requested, body, f"ImageNet weights are not available: {reason}")
    body = body_sha256(body_state(model, name))
    return _from_file(name, requested, "imagenet", path, body, "torchvision's ImageNet weights")


def imagenet_model(name: str, hub: Path) -> nn.Module:
    """Return torchvision's model with its default weights from ``hub``. torchvision's builder can read old files."""
    before = torch.hub.get_dir()
    torch.hub.set_dir(str(hub))
    try:
        model: nn.Module = torchvision.models.get_model(name, weights="DEFAULT")
    finally:
        torch.hub.set_dir(before)
    return model


def _random(name: str, requested: str, body: str, reason: str) -> Weights:
    return Weights(
        model=name, requested=requested, kind="random", file=None, sha256=None, body_sha256=body, reason=reason
    )


def _from_file(
    name: str, requested: str, kind: Literal["imagenet", "file"], path: Path, body: str, reason: str
) -> Weights:
    return Weights(
        model=name,
        requested=requested,
        kind=kind,
        file=path.name,
        sha256=file_sha256(path),
        body_sha256=body,
        reason=reason,
    )


def fetch_imagenet(name: str, hub: Path) -> Path:
    """Return the file of torchvision's default weights in ``hub/checkpoints``, copied from torch's cache or downloaded.

    Either file is checked against the checksum in its name.
    """
    weights = torchvision.models.get_model_weights(name).DEFAULT
    file_name = weights.url.rsplit("/", 1)[-1]
    target: Path = hub / "checkpoints" / file_name
    prefix = target.stem.rsplit("-", 1)[-1]  # torchvision's file names end with the first digits of the checksum
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
