"""What is in force in this process, compared with what its run asks for: a difference is a failed
run."""

import multiprocessing
import os
import sys
from itertools import chain
from pathlib import Path

import torch
from torch import nn

from study.artifacts.samples import InForce
from study.base.devices import usable_cpus
from study.base.errors import StudyError
from study.config.settings import KEYS, Settings
from study.training.instruments.machine import fp32_in_use

MEMORY_FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


class Asked:
    """What a run asks for. Make it before the run's model: what no key names is to stay as torch
    has it until then."""

    def __init__(self, settings: Settings, device: torch.device, workers: int) -> None:
        self.device, self.format = device, settings.training.memory_format
        self.folder = Path.cwd()
        training, here = settings.training, torch.empty(0, device=device).device
        asked = {
            "workers": workers,
            "grad_mode": True,
            "dtypes": ["float32"],
            "devices": [str(here)],
        }
        if isinstance(training.threads, int):
            asked["threads"] = training.threads
        if training.precision in ("fp32", "tf32"):
            asked |= dict.fromkeys(
                ("matrix_products", "convolutions"), training.precision.replace("fp32", "ieee")
            )
        if training.deterministic:
            asked |= {"deterministic": True, "cudnn_deterministic": True, "cudnn_benchmark": False}
        self.values = self._found(None, workers).model_copy(update=asked)

    def check(
        self,
        model: nn.Module | None,
        workers: int,
        when: str = "once the model is built",
        moved: bool = True,
    ) -> InForce:
        """Return what is in force. Raise :class:`StudyError` if it is not what was asked for.

        The model need not be on its device if it is not ``moved`` yet: stock fastai does that as
        the training begins.
        """
        if not self.folder.samefile("."):
            os.chdir(self.folder)  # where results are written
            raise StudyError(f"the working folder is another one {when}: the model changes it")
        found = self._found(model, workers)
        for name in InForce.model_fields:
            asked, now = getattr(self.values, name), getattr(found, name)
            unknown = (model is None and name in ("dtypes", "devices")) or (
                name == "devices" and not moved
            )
            if asked != now and not unknown:
                asking = [key for key, known in KEYS.items() if name in known.in_force]
                key = f"{asking[0]}: " if asking else ""
                why = f"asked for {name} {_words(asked)}, and {_words(now)} is in force {when}"
                raise StudyError(f"{key}{why}: the model, or what it imports, sets it")
        return found

    def _found(self, model: nn.Module | None, workers: int) -> InForce:
        parameters = list(model.parameters()) if model else []
        weights = [one for one in parameters if one.ndim == 4]
        held = (
            name
            for name in (self.format, *MEMORY_FORMATS)
            if all(one.is_contiguous(memory_format=MEMORY_FORMATS[name]) for one in weights)
        )
        fp32, cudnn = fp32_in_use(self.device.type), torch.backends.cudnn
        methods = multiprocessing.get_all_start_methods()
        return InForce(
            threads=torch.get_num_threads(),
            interop_threads=torch.get_num_interop_threads(),
            cpus=usable_cpus(),
            workers=workers,
            start_method=multiprocessing.get_start_method(allow_none=True) or methods[0],
            grad_mode=torch.is_grad_enabled(),
            autocast=torch.is_autocast_enabled(self.device.type),
            default_dtype=_name(torch.get_default_dtype()),
            deterministic=torch.are_deterministic_algorithms_enabled(),
            detect_anomaly=torch.is_anomaly_enabled(),
            flush_denormal=sys.float_info.min / 2 == 0,
            cudnn=bool(cudnn.enabled),
            cudnn_benchmark=bool(cudnn.benchmark),
            cudnn_deterministic=bool(cudnn.deterministic),
            mkldnn=torch._C._get_mkldnn_enabled(),
            matrix_products=fp32.products,
            convolutions=fp32.convolutions,
            memory_format=next(held, "mixed"),
            dtypes=sorted({_name(one.dtype) for one in parameters if one.is_floating_point()}),
            devices=sorted(
                {str(one.device) for one in chain(parameters, model.buffers() if model else [])}
            ),
        )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _words(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value).lower()
