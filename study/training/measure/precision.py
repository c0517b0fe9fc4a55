"""What fp32 is computed in, and how it is set."""

from typing import Any

import torch

from study.artifacts.machine import Fp32
from study.config.sections import Precision

FIRST_CAPABILITY_WITH_TF32 = 8
"""Lowest major compute capability of an NVIDIA GPU with TF32 (Ampere)."""


def fp32_backends(kind: str) -> tuple[Any, Any]:
    """Return the objects that hold torch's fp32 settings on the device: for matrix products and for convolutions."""

    backends: Any = torch.backends  # its settings are made at import, out of sight of a type checker
    if kind == "cuda":
        return backends.cuda.matmul, backends.cudnn.conv
    return backends.mkldnn.matmul, backends.mkldnn.conv


def fp32_settings(kind: str) -> tuple[str, str]:
    """Return the settings for matrix products and for convolutions; torch resolves inherited ones."""
    matmul, convolution = fp32_backends(kind)
    return str(matmul.fp32_precision), str(convolution.fp32_precision)


def set_fp32(precision: Precision) -> None:
    """Let torch compute fp32 on a GPU in IEEE single precision or in TF32, if ``precision`` names one of them.

    The function uses torch's older switches: the newer ones make the older unreadable, and torch's own compiler still
    reads those.
    """

    if precision in ("fp32", "tf32"):
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"


def fp32_in_use(kind: str) -> Fp32:
    """Return the arithmetic of fp32 on the device as torch is set now. An older GPU has no TF32 in any setting."""
    names = ["ieee" if name == "none" else name for name in fp32_settings(kind)]
    if kind == "cuda" and not has_tf32():
        names = ["ieee" if name == "tf32" else name for name in names]
    return Fp32(products=names[0], convolutions=names[1])


def has_tf32() -> bool:
    """Return whether the current GPU computes in TF32."""

    return torch.cuda.get_device_capability()[0] >= FIRST_CAPABILITY_WITH_TF32
