"""The device of a run as torch has it, and the wait until it has finished.

A TPU is that of ``torch_tpu``. Where ``STUDY_TPU_STAND_IN`` names another of torch's devices, as
tests have it, that one takes its place, and the record says so. No hardware has confirmed yet what
is said of a TPU here.
"""

import os
from typing import Any

import torch

from study.base.devices import TPU_STAND_IN
from study.config.settings import Settings


def torch_device(name: str, number: int | None = None) -> torch.device:
    """Return the device called ``name``; of several GPUs the one with a ``number``. Of TPUs a
    process sees its own."""
    if name == "cuda" and number is not None:
        return torch.device(name, number)
    if name != "tpu":
        return torch.device(name)
    if stand_in := os.environ.get(TPU_STAND_IN):
        return torch.device(stand_in)
    tpu: Any = _tpu()
    # else work is put off until a value is read: after the clock
    tpu.eager_mode = tpu.EagerMode.DEFER_NEVER
    return torch.device(name)


def own_device(settings: Settings) -> torch.device:
    """Return the device on which the process of a run computes itself: where others train, they
    hold every TPU."""
    others = settings.device == "tpu" and settings.training.strategy != "single"
    return torch.device("cpu") if others else torch_device(settings.device)


def tpus() -> int:
    """Return the number of TPUs that torch can use."""
    if TPU_STAND_IN in os.environ:
        return torch.get_num_threads()
    return int(_tpu().device_count()) if hasattr(_tpu(), "device_count") else 0


def tpu_name(cpu_name: str) -> str:
    """Return the name of the TPU, or of what takes its place."""
    return (
        f"{cpu_name}, in place of a TPU"
        if TPU_STAND_IN in os.environ
        else str(_tpu().get_device_name())
    )


def before_ranks(settings: Settings) -> None:
    """Decide what the processes that train on TPUs have to agree on, before they start."""
    if settings.device == "tpu" and TPU_STAND_IN not in os.environ:
        _tpu().distributed.set_tpu_launch_env(nproc_per_node=settings.training.replicas)


def synchronise(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type != "cpu":
        torch.accelerator.synchronize(device)


def _tpu() -> Any:
    return getattr(torch, "tpu", None)
