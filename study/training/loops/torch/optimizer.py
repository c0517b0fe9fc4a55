"""The optimizer of the plain loop, over groups of parameters, and which of them a stage trains."""

from typing import Any

import torch
from torch import nn

from study.config.sections import Training
from study.training.loops.schedule import EPSILON, MOMENTUM, SQUARE_MOMENTUM, WEIGHT_DECAY
from study.training.models import build as models

# fastai's `train_bn` means batch normalisation; networks without it have their own kind.
NORMALISATION = (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm)
IMPLEMENTATIONS: dict[str, dict[str, Any]] = {
    "auto": {},
    "for_loop": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
"""Arguments of torch's optimizers."""


def layer_groups(model: nn.Module) -> list[list[str]]:
    """Return the names of the parameters in groups of one learning rate; every parameter is in one
    group.

    A residual network has three groups as fastai splits it (stem and first two layers, last two
    layers, head). Any other has two (body, head).
    """
    head = models.head_name(model)
    names = [name for name, _ in model.named_parameters()]
    last = [name for name in names if name.startswith(f"{head}.")]
    late = list[str]()
    if isinstance(getattr(model, "layer4", None), nn.Module) and head == "fc":
        late = [name for name in names if name.startswith(("layer3.", "layer4."))]
    apart = {*late, *last}
    early = [name for name in names if name not in apart]
    return [early, late, last] if late else [early, last]


def is_normalisation(model: nn.Module, name: str) -> bool:
    """Return whether the parameter belongs to a normalisation layer."""
    return isinstance(model.get_submodule(name.rpartition(".")[0]), NORMALISATION)


def make_optimizer(
    model: nn.Module, groups: list[list[str]], training: Training
) -> torch.optim.Optimizer:
    """Return the optimizer over layer groups, in the implementation of the settings.

    AdamW has fastai's constants (no weight decay on normalisation layers and biases). Adam has
    torch's constants. SGD has momentum.
    """
    kind, options = training.optimizer, IMPLEMENTATIONS[training.optimizer_implementation]
    parameters = dict(model.named_parameters())
    parameter_groups = []
    for number, names in enumerate(groups):
        plain = [name for name in names if name.endswith("bias") or is_normalisation(model, name)]
        decayed = [name for name in names if name not in plain]
        for chosen, decay in ((decayed, WEIGHT_DECAY if kind == "adamw" else 0.0), (plain, 0.0)):
            if chosen:
                members = [parameters[name] for name in chosen]
                parameter_groups.append(
                    {"params": members, "weight_decay": decay, "layer_group": number}
                )
    if kind == "sgd":
        return torch.optim.SGD(parameter_groups, lr=1e-3, momentum=MOMENTUM, **options)
    if kind == "adam":
        return torch.optim.Adam(parameter_groups, lr=1e-3, **options)
    betas = (MOMENTUM, SQUARE_MOMENTUM)
    return torch.optim.AdamW(parameter_groups, lr=1e-3, betas=betas, eps=EPSILON, **options)


def set_frozen(model: nn.Module, groups: list[list[str]], frozen: bool) -> None:
    """Freeze all but the last group; normalisation layers always train, as in fastai
    (``train_bn``).

    Parameters that are in no group stay as the model has them.
    """
    for names in groups:
        for name in names:
            trains = not frozen or names is groups[-1] or is_normalisation(model, name)
            model.get_parameter(name).requires_grad_(trains)
