"""The settings that a race compares: what makes the same training faster on a device, with the
levels worth trying."""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from study.base.errors import StudyError
from study.config.sections import Device
from study.config.settings import Settings, get, with_values
from study.config.study import Study

Levels = Mapping[str, Any]
"""A level of each factor, by its dotted key."""
SWITCHES: dict[str, tuple[Any, ...]] = {
    "training.precision": ("auto", "bf16"),
    "training.memory_format": ("contiguous", "channels_last"),
    "training.optimizer_implementation": ("auto", "fused"),
    "training.cuda_graph": (False, True),
    "training.cudnn_benchmark": (True, False),
    "loader.kind": ("workers", "threads"),
    "loader.workers": ("auto", 0),
}
"""What is tried of each switch, the plain level first. `torch.compile` is not: it takes longer than
a short training. Images on the device are not: they are decoded before the clock starts, so their
time is not that of the others."""
PROMISING = tuple(SWITCHES)[:4] + ("loader.kind",)
"""The switches whose last levels together are tried first."""
OF_A_GPU = ("training.cuda_graph", "training.cudnn_benchmark")
NO_LOADER: dict[str, tuple[Any, ...]] = {"loader.kind": (), "loader.workers": ()}
"""What is tried of the loader where the study's own images are decoded before the clock starts:
nothing."""
BATCHES = (0.5, 1.0, 2.0, 4.0)
"""Batch sizes that are tried, as multiples of the study's own."""
BATCH_SIZE = "training.batch_size"
STOCK = {"training.loop": "fastai"}


@dataclass(frozen=True)
class Space:
    """The factors of a race, and its settings in the order in which they are worth trying."""

    factors: Mapping[str, list[Any]]
    baseline: Levels
    """Stock fastai with its defaults; the study's own settings where fastai cannot train them."""
    others: Sequence[Levels]


def space_of(study: Study, device: Device, train_images: int) -> Space:
    """Return what is worth trying for the training of ``study`` on ``device``.

    Factors of the study keep their levels; a switch that the study sets has its value, too. Raise
    :class:`StudyError` if the study trains nothing.
    """
    if study.command:
        raise StudyError("command: it is not allowed: only a training of ours can be tuned")
    factors = _factors(study, device, train_images)
    base = {key: value for key, value in study.model_dump().items() if key in Settings.model_fields}
    plain = {key: levels[0] for key, levels in factors.items()}
    stock = plain | {"loader.kind": "workers", "loader.workers": "auto"} | STOCK
    valid = [levels for levels in _every(factors) if _holds(base, levels)]
    if not valid:
        raise StudyError("no setting of this study can be trained on this device")
    first = [plain, plain | {key: factors[key][-1] for key in PROMISING if key in factors}]
    rest = [levels for levels in valid if levels not in first]
    random.Random(study.seed).shuffle(rest)
    others = [levels for levels in first if levels in valid] + rest
    if not _holds(base, stock):
        return Space(factors, others[0], others[1:])
    return Space(factors | {"training.loop": ["fastai", "torch"]}, stock, others)


def _factors(study: Study, device: Device, train_images: int) -> dict[str, list[Any]]:
    """Return the factors with their levels, the study's own value first."""
    own = {
        key: levels
        for key, levels in study.factors.items()
        if key not in ("device", "control", *STOCK)
    }
    batch = study.training.batch_size
    sizes = [batch, *(int(batch * times) for times in BATCHES if times != 1)]
    switches = SWITCHES | ({} if study.loader.kind in SWITCHES["loader.kind"] else NO_LOADER)
    tried: dict[str, list[Any]] = {"device": [device], "training.loop": ["torch"]}
    tried[BATCH_SIZE] = [size for size in sizes if 1 <= size <= train_images]
    for key, levels in switches.items():
        if device == "cuda" or key not in OF_A_GPU:
            tried[key] = list(dict.fromkeys([get(study, key), *levels]))
    return tried | own


def _every(factors: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for levels in itertools.product(*factors.values()):
        yield dict(zip(factors, levels, strict=True))


def _holds(base: dict[str, Any], levels: Levels) -> bool:
    """Return whether a run can have these levels."""
    try:
        Settings.of_values(with_values(base, dict(levels)), "")
    except StudyError:
        return False
    return True
