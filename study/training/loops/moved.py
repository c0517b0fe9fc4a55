"""The check that a training trained: a step that moves no weight is fast because it does nothing."""

from collections.abc import Iterable, Sequence

import torch
from torch import nn

from study.base.errors import StudyError


class Start:
    """A model's parameters before the first step, kept on the host: the device's memory stays the training's."""

    def __init__(self, model: nn.Module) -> None:
        self.values = {name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()}

    def check(self, model: nn.Module, groups: Iterable[Sequence[str]]) -> None:
        """Raise :class:`StudyError` if no parameter of one of the trained ``groups`` of names has moved."""
        parameters = dict(model.named_parameters())
        for names in groups:
            if all(torch.equal(parameters[name].detach().cpu(), self.values[name]) for name in names):
                raise StudyError(
                    f"training: no weight from {names[0]} to {names[-1]} has moved in the whole training: its steps do "
                    "not train them"
                )
