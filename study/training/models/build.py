"""Networks by name, the decision about the source of their weights, and the parts body and head.
Imports torch.

torchvision is imported where one of its models is asked for: it takes as long as torch.
"""

import difflib
import hashlib
from collections.abc import Collection, Mapping
from typing import cast

import torch
from torch import nn

from study.base.errors import StudyError
from study.config.sections import AUXILIARY, is_own
from study.training.models import own

State = Mapping[str, torch.Tensor]
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# The weights were trained on pixels in -1 to 1, and the model itself rescales what is normalised as
# for ImageNet.
WITHOUT_AUXILIARY = {"aux_logits": False, "init_weights": True, "transform_input": True}
AUXILIARY_PARTS = ("AuxLogits.", "aux1.", "aux2.")
"""Names in the files of the models with auxiliary outputs that belong to these."""


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
    """Return the model for ``classes``: torchvision's, or a user's own by import path.

    Its input is (n, c, size, size) float32, normalised, with c = :func:`input_channels`; its output
    is (n, classes). Both are tried once if an ``image_size`` is given. The body starts from
    ``state``, or random from ``seed``. The head starts random from ``head_seed`` (None: from
    ``seed``). Raise :class:`StudyError` if the name, the state or the images do not fit.
    """
    if is_own(name):
        model = own.made(name, classes, seed)
        if state is not None:
            _load(model, name, state, own.unfit(model, name, state))
    else:
        model = with_new_head(
            backbone(name, seed, state), classes, seed if head_seed is None else head_seed
        )
    if image_size is not None:
        _check_outputs(
            model, name, (input_channels(name, channels), image_size, image_size), classes
        )
    return model


def input_channels(name: str, channels: int) -> int:
    """Return the input channels of the model. torchvision models always take 3; grey images are
    repeated."""
    return channels if is_own(name) else 3


def normalisation(name: str, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each input channel, for pixels in 0 to 1."""
    return ((0.5,) * channels, (0.5,) * channels) if is_own(name) else (IMAGENET_MEAN, IMAGENET_STD)


def _check_outputs(model: nn.Module, name: str, image: tuple[int, int, int], classes: int) -> None:
    """Raise :class:`StudyError` unless a model turns images (2, *``image``) into outputs (2,
    ``classes``)."""
    model.eval()
    try:
        with torch.no_grad():
            outputs = model(torch.zeros(2, *image))
    except (Exception, SystemExit) as error:
        why = f"fails on images of {' x '.join(map(str, image))}: {own.words_of(error)}"
        raise own.refused(
            name, why, error, "a model and a dataset.image_size that fit each other"
        ) from None
    finally:
        model.train()
    shape = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs).__name__
    if shape != (2, classes):
        why = f"returns {shape} for two images, but the data have {classes} classes"
        raise own.refused(name, why, allowed=str((2, classes)))


def available() -> list[str]:
    """Return the names of the models that can be chosen; a user's own is named by its import
    path."""
    import torchvision.models

    names: list[str] = torchvision.models.list_models(module=torchvision.models)
    return names


def backbone(name: str, seed: int, state: State | None = None) -> nn.Module:
    """Return the model before its head is replaced, with ``state`` or with random weights from
    ``seed``.

    Raise :class:`StudyError` if the name is unknown, or the state belongs to another model.
    """
    import torchvision.models

    if name not in available():
        near = difflib.get_close_matches(name, available(), 5) or [
            "resnet18",
            "resnet34",
            "resnet50",
        ]
        raise StudyError(
            f"model.name: {name!r} is not allowed: no such model; near: {', '.join(near)}; or a "
            "model of your own as package.module:factory"
        )
    torch.manual_seed(seed)
    model: nn.Module = torchvision.models.get_model(
        name, **(WITHOUT_AUXILIARY if name in AUXILIARY else {})
    )
    if state is not None:
        head = f"{head_name(model)}."
        without = {key for key in (*state, *model.state_dict()) if key.startswith(head)}
        _load(model, name, state, without)
    return model


def _load(model: nn.Module, name: str, state: State, without: Collection[str]) -> None:
    """Load ``state`` ``without`` the entries of a head, which is for other classes."""
    current = model.state_dict()
    auxiliary = AUXILIARY_PARTS if name in AUXILIARY else ()
    body = {
        key: value
        for key, value in state.items()
        if key not in without and not key.startswith(auxiliary)
    }
    wanted = current.keys() - without
    # torch itself accepts files from before batches were counted.
    counters = {key for key in wanted if key.endswith("num_batches_tracked")}
    missing = sorted(wanted - body.keys() - counters)
    for key in body if missing else ():
        prefix = key.removesuffix(missing[0])
        if prefix != key and all(f"{prefix}{one}" in body for one in missing):
            raise StudyError(
                f"model.weights: the file is not for {name}: its keys have the prefix {prefix!r}; "
                f"allowed: keys without it, such as {missing[0]}"
            )
    for key in sorted((wanted ^ set(body)) - counters):
        trouble = "is missing" if key in wanted else "is not part of the model"
        raise StudyError(f"model.weights: the file is not for {name}: {key} {trouble}")
    for key in sorted(wanted & set(body)):
        if current[key].shape != body[key].shape:
            raise StudyError(
                f"model.weights: the file is not for {name}: {key} has shape "
                f"{tuple(body[key].shape)}, allowed: {tuple(current[key].shape)}"
            )
    model.load_state_dict(body, strict=False)


def head_name(model: nn.Module) -> str:
    """Return the dotted name of the classifying layer: the last linear one, or the last convolution
    without any."""
    for kind in (nn.Linear, nn.Conv2d):
        names: list[str] = [
            name for name, module in model.named_modules() if isinstance(module, kind)
        ]
        if names:
            return names[-1]
    raise StudyError(
        "model.name: the model has no linear layer and no convolution that could be its head"
    )


def with_new_head(model: nn.Module, classes: int, seed: int) -> nn.Module:
    """Return the model with a head for ``classes`` of the kind that it had, random from
    ``seed``."""
    name = head_name(model)
    old = model.get_submodule(name)
    torch.manual_seed(seed)
    if isinstance(old, nn.Conv2d):
        new: nn.Module = nn.Conv2d(old.in_channels, classes, old.kernel_size)  # type: ignore[arg-type]
    else:
        new = nn.Linear(cast(nn.Linear, old).in_features, classes)
    model.set_submodule(name, new)
    return model


def shapes(model: nn.Module) -> dict[str, list[int]]:
    """Return the shape of each parameter of the model, by its name."""
    return {name: list(parameter.shape) for name, parameter in model.named_parameters()}


def check_shapes(name: str, model: nn.Module, wanted: Mapping[str, list[int]]) -> None:
    """Raise :class:`StudyError` if the model ``name`` has other parameters than when it was
    tried."""
    actual = shapes(model)
    for key in [*wanted, *actual]:
        if actual.get(key) != wanted.get(key):
            was, now = (tuple(some[key]) if key in some else "nothing" for some in (wanted, actual))
            raise StudyError(
                key="model.name",
                value=name,
                why=f"its parameter {key} has the shape {now}, and had {was} when the model "
                "was tried before the runs",
                allowed="a model that is the same each time it is made",
            )


def body_sha256(state: State) -> str:
    """Return the checksum over the tensors of a body in their order. Names do not count: they
    differ between loops."""
    total = hashlib.sha256()
    for tensor in state.values():
        total.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def body_state(model: nn.Module, name: str) -> dict[str, torch.Tensor]:
    """Return the tensors of the model without its head; all tensors of a user's own model, whose
    head is not known."""
    state: dict[str, torch.Tensor] = model.state_dict()
    if is_own(name):
        return state
    head = f"{head_name(model)}."
    return {key: state[key] for key in state if not key.startswith(head)}
