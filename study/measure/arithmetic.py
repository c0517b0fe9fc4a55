"""The arithmetic of a training step (FLOPs, bytes) and the measured ceilings of the machine (FLOP/s, bytes/s).

The ceilings are measured, not read from a data sheet: a large matrix product and a large copy. A multiplication with
its addition counts as two FLOPs throughout. The functions import torch themselves, because the figures read these
models on the host.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from study.config import Precision, Strict

if TYPE_CHECKING:
    import torch
    from torch import nn

    from study.measure.clock import Clock

ADAM_MOMENTS = 2
"""Number of values that Adam keeps for each trained parameter."""
SAMPLE_SECONDS = 0.01
"""Shortest sample in seconds: shorter calls are repeated, so that launch overhead and clock resolution do not count."""
SAMPLING_SECONDS = 0.3
FEWEST_SAMPLES = 5
# A larger product uses more of the machine, and the first that takes long is large enough: a few milliseconds may be
# all waiting if another process holds a core. Half precision in software (a CPU's fp16) stops at the smallest.
PRODUCT_SIDES = {"cpu": (256, 512, 1024, 2048, 4096), "cuda": (2048, 4096, 8192)}
LONG_CALL_SECONDS = 0.02
# Several times the last-level cache: a copy that stays in it would be a ceiling of the cache.
COPY_BYTES = {"cpu": 2**28, "cuda": 2**30}
FP32_ARITHMETIC = ("ieee", "tf32", "bf16")
"""torch's names for the arithmetic of fp32, from slow to fast. torch says ``none`` for IEEE when nothing is set."""


HALF: dict[Precision, str] = {"bf16": "bfloat16", "fp16": "float16"}
"""torch's names for the types of mixed precision. The other precisions store fp32."""
FIRST_CAPABILITY_WITH_TF32 = 8
"""Lowest major compute capability of an NVIDIA GPU with TF32 (Ampere)."""


class Fp32(Strict):
    """The arithmetic that a run's device used for fp32: ``ieee``, ``tf32`` or ``bf16``."""

    products: str = Field(description="Arithmetic of matrix products.")
    convolutions: str


class Flops(Strict):
    """Arithmetic (FLOPs) and least memory traffic (bytes) of one training step, per image."""

    images: int = Field(ge=1, description="Number of images in the counted step.")
    forward_flop_per_image: float = Field(ge=0, description="FLOPs of the forward pass, loss included.")
    backward_flop_per_image: float = Field(
        ge=0, description="FLOPs of the backward pass, with the parameters frozen that the stage freezes."
    )
    bytes_per_image: float = Field(
        gt=0, description="Lower bound of the bytes moved; see `measure.arithmetic.least_bytes`."
    )

    @property
    def flop_per_image(self) -> float:
        """FLOPs per image of the forward and the backward pass."""
        return self.forward_flop_per_image + self.backward_flop_per_image

    @property
    def flop_per_byte(self) -> float:
        """Arithmetic intensity in FLOPs per byte. It is an upper bound, because the bytes are a lower bound."""
        return self.flop_per_image / self.bytes_per_image


class Ceiling(Strict):
    """One measured rate of the machine, in the unit that its field's name gives."""

    best: float = Field(gt=0, description="The largest sample.")
    samples: list[float] = Field(min_length=1, description="Every sample, in the order in which they were taken.")
    calls_per_sample: int = Field(ge=1, description="Number of calls in one sample; the sample is their mean rate.")

    @model_validator(mode="after")
    def _the_best_is_a_sample(self) -> Self:
        if self.best != max(self.samples):
            raise ValueError(f"best: {self.best} is not allowed: the largest sample is {max(self.samples)}")
        return self


class Ceilings(Strict):
    """The rates that a device reached in a large matrix product and a large copy."""

    device: Literal["cpu", "cuda"]
    precision: Precision
    threads: int = Field(ge=1, description="Number of CPU threads that torch used.")
    matmul_fp32_precision: str = Field(
        description="torch's setting for the arithmetic of fp32 matrix products, as found."
    )
    convolution_fp32_precision: str = Field(
        description="torch's setting for the arithmetic of fp32 convolutions, as found (cuDNN: `tf32` by default)."
    )
    product_arithmetic: str = Field(
        description="Arithmetic of the measured product: `ieee`, `tf32`, `bf16` or `fp16`. For fp32 it is the "
        "faster of the two settings, because a step may use both and must not exceed its ceiling."
    )
    product_side: int = Field(ge=1, description="Number of rows and of columns of the square matrices.")
    copy_bytes: int = Field(ge=1, description="Bytes that one copy reads; it writes the same number.")
    product_flop_per_second: Ceiling
    copy_bytes_per_second: Ceiling = Field(description="Bytes read plus bytes written, per second.")

    def attainable(self, flop_per_byte: float) -> float:
        """Return the FLOP/s under the roof at an intensity: min(product, intensity x copy) (Williams et al. 2009)."""
        return min(self.product_flop_per_second.best, flop_per_byte * self.copy_bytes_per_second.best)


def flops_of_step(
    model: "nn.Module",
    inputs: "torch.Tensor",
    labels: "torch.Tensor",
    loss: "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]",
    moments: int = ADAM_MOMENTS,
) -> Flops:
    """Return the FLOPs per image of forward and backward, by torch's ``FlopCounterMode``, and :func:`least_bytes`.

    ``inputs`` has shape (n, channels, height, width) and ``labels`` has shape (n,); only their shapes and types are
    used.

    Matrix products, convolutions and attention count, by their shapes. Element-wise operations, normalisation, pooling
    and the optimizer do not count. Parameters that are frozen now do not count in the backward pass: call this function
    once for each stage.

    Nothing is computed, so nothing changes. For the call every parameter and buffer is replaced
    (``torch.func.functional_call``) by a tensor of the same shape on the device ``meta``, which has no storage.
    Gradients and batch-norm statistics land there and are dropped. No kernel runs, no device memory is allocated, no
    peak moves, and no random number is drawn from a device; the host's generator is restored. Hooks of the model do run
    once. The host does load about 60 MB of torch's own Python modules, and its resident peak is that of the process:
    read the peak before you count. Only the flags ``requires_grad`` matter, so a stage can be frozen again after
    training to be counted. torch raises ``RuntimeError`` or ``NotImplementedError`` for a forward pass that reads a
    tensor's values: it cannot be counted.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    formulas = {torch.ops.aten.convolution_backward: _convolution_backward_flop}
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        counter = FlopCounterMode(display=False, custom_mapping=formulas)
        with counter:
            value = _without_storage(loss, _without_storage(model, _shadow(inputs)), _shadow(labels))
            forward = counter.get_total_flops()
            if value.requires_grad:
                torch.autograd.backward(value)
            total = counter.get_total_flops()
    images = len(inputs)
    return Flops(
        images=images,
        forward_flop_per_image=forward / images,
        backward_flop_per_image=(total - forward) / images,
        bytes_per_image=least_bytes(model, inputs, moments) / images,
    )


def least_bytes(model: "nn.Module", inputs: "torch.Tensor", moments: int = ADAM_MOMENTS) -> int:
    """Return the bytes that a step must move at least, in the types that the tensors have now.

    The inputs and every parameter are read once. For each trained parameter the gradient is written and read, the
    optimizer's ``moments`` are read and written, and the parameter itself is written. The true traffic is larger,
    because this omits the activations, which the forward pass writes and the backward pass reads (at large batches by
    far the most), the second reading of the weights in the backward pass, buffers, labels, the casts of mixed
    precision, workspaces, and the transfer from the host. Data that a cache holds from one phase to the next counts,
    although it may not move.
    """
    moved = inputs.numel() * inputs.element_size()
    for parameter in model.parameters():
        size = parameter.numel() * parameter.element_size()
        moved += size
        if parameter.requires_grad:
            moved += size * (2 + 2 * moments + 1)
    return moved


def _shadow(tensor: "torch.Tensor") -> "torch.Tensor":
    """Return a plain tensor on ``meta`` with the same shape, type and ``requires_grad``, even for a subclass.

    fastai's tensors are such a subclass.
    """
    import torch

    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta", requires_grad=tensor.requires_grad)


def _without_storage(call: "Callable[..., torch.Tensor]", *arguments: "torch.Tensor") -> "torch.Tensor":
    """Return the result of ``call``; if it is a module, shadows replace the tensors that it holds."""
    from torch import nn
    from torch.func import functional_call

    if not isinstance(call, nn.Module):
        return call(*arguments)
    held = {name: _shadow(tensor) for name, tensor in [*call.named_parameters(), *call.named_buffers()]}
    result: torch.Tensor = functional_call(call, held, arguments)
    return result


def _convolution_backward_flop(
    grad_shape: Sequence[int],
    input_shape: Sequence[int],
    weight_shape: Sequence[int],
    *others: Any,
    out_shape: Any = None,
    **_: Any,
) -> int:
    """Return the FLOPs of a convolution's gradients: by input and by weight, each equal to those of the forward pass.

    This replaces torch's own formula, which (2.11 to 2.15) omits the groups in the gradient by weight, and so
    multiplies the FLOPs of a depthwise convolution by its number of channels. ``weight_shape`` is already per group.
    The order of ``others`` is aten's: bias, stride, padding, dilation, transposed, output padding, groups, output mask.
    """
    transposed, (by_input, by_weight, _by_bias) = others[4], others[7]
    places = math.prod((input_shape if transposed else grad_shape)[2:])
    return 2 * input_shape[0] * places * math.prod(weight_shape) * (int(by_input) + int(by_weight))


def measure_ceilings(device: "torch.device", precision: Precision) -> Ceilings:
    """Measure both ceilings: FLOP/s of a product of square matrices, 2 x side^3 / s, and bytes/s of a copy.

    The measurement takes under 3 s on two CPU cores. It allocates up to 0.5 GiB on a CPU and 2 GiB on a GPU, and frees
    it. That moves the memory peaks and drops torch's cached blocks, so call it outside a run. Random numbers come from
    a separate generator. The device's clock does the timing (``measure.clock``): on a GPU the samples are events in its
    queue, with one synchronisation at their end.
    """
    import torch

    from study.measure.clock import clock_for

    kind: Literal["cpu", "cuda"] = "cuda" if device.type == "cuda" else "cpu"
    clock = clock_for(device)
    matmul, convolution = _fp32_settings(kind)
    single = precision not in HALF
    used = fp32_in_use(kind)
    arithmetic = max((used.products, used.convolutions), key=FP32_ARITHMETIC.index) if single else precision
    with torch.no_grad():
        with _fp32_products(kind, arithmetic if single else matmul):
            side, multiply = _large_product(device, precision, clock)
            product = sample(multiply, 2.0 * side**3, clock)
        del multiply
        copied = sample(_copy(COPY_BYTES[kind], device), 2.0 * COPY_BYTES[kind], clock)
    if kind == "cuda":
        torch.cuda.empty_cache()
    return Ceilings(
        device=kind,
        precision=precision,
        threads=torch.get_num_threads(),
        matmul_fp32_precision=matmul,
        convolution_fp32_precision=convolution,
        product_arithmetic=arithmetic,
        product_side=side,
        copy_bytes=COPY_BYTES[kind],
        product_flop_per_second=product,
        copy_bytes_per_second=copied,
    )


def sample(call: Callable[[], object], work: float, clock: "Clock") -> Ceiling:
    """Return the rates of a call that does ``work`` (FLOPs or bytes), sampled for about ``SAMPLING_SECONDS``.

    The call is warmed up before, and the clock is read at the end.
    """
    seconds = seconds_of(call, clock)
    calls = max(1, math.ceil(SAMPLE_SECONDS / seconds))
    count = max(FEWEST_SAMPLES, math.ceil(SAMPLING_SECONDS / (seconds * calls)))
    marks = [clock.mark()]
    for _ in range(count):
        for _ in range(calls):
            call()
        marks.append(clock.mark())
    clock.settle()
    samples = [work * calls / clock.seconds(a, b) for a, b in pairwise(marks)]
    return Ceiling(best=max(samples), samples=samples, calls_per_sample=calls)


def seconds_of(call: Callable[[], object], clock: "Clock") -> float:
    """Return the seconds of a warm call: the shorter of two after a first, which pays for libraries and memory."""
    call()
    marks = [clock.mark()]
    for _ in range(2):
        call()
        marks.append(clock.mark())
    clock.settle()
    return max(1e-9, min(clock.seconds(a, b) for a, b in pairwise(marks)))


def _large_product(
    device: "torch.device", precision: Precision, clock: "Clock"
) -> "tuple[int, Callable[[], torch.Tensor]]":
    """Return side and call of the first product that takes ``LONG_CALL_SECONDS``, or of the largest product."""
    sides = PRODUCT_SIDES["cuda" if device.type == "cuda" else "cpu"]
    for side in sides:
        call = _product(side, device, precision)
        if seconds_of(call, clock) >= LONG_CALL_SECONDS:
            break
    return side, call


def _product(side: int, device: "torch.device", precision: Precision) -> "Callable[[], torch.Tensor]":
    """Return a call that multiplies two random square matrices.

    The values are random because a GPU's power, and so its clock, depends on them.
    """
    import torch

    dtype = getattr(torch, HALF.get(precision, "float32"))
    generator = torch.Generator(device).manual_seed(0)
    a, b = (torch.randn(side, side, generator=generator, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _copy(size: int, device: "torch.device") -> "Callable[[], torch.Tensor]":
    """Return a call that reads and writes ``size`` bytes; both tensors are touched before, as first use costs more."""
    import torch

    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.zeros_like(source).fill_(2)
    return lambda: target.copy_(source)


def _fp32_backends(kind: str) -> tuple[Any, Any]:
    """Return the objects that hold torch's fp32 settings on the device: for matrix products and for convolutions."""
    import torch

    backends: Any = torch.backends  # its settings are made at import, out of sight of a type checker
    if kind == "cuda":
        return backends.cuda.matmul, backends.cudnn.conv
    return backends.mkldnn.matmul, backends.mkldnn.conv


def _fp32_settings(kind: str) -> tuple[str, str]:
    """Return the settings for matrix products and for convolutions; torch resolves inherited ones."""
    matmul, convolution = _fp32_backends(kind)
    return str(matmul.fp32_precision), str(convolution.fp32_precision)


def set_fp32(precision: Precision) -> None:
    """Let torch compute fp32 on a GPU in IEEE single precision or in TF32, if ``precision`` names one of them.

    The function uses torch's older switches: the newer ones make the older unreadable, and torch's own compiler still
    reads those.
    """
    import torch

    if precision in ("fp32", "tf32"):
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"


def fp32_in_use(kind: str) -> Fp32:
    """Return the arithmetic of fp32 on the device as torch is set now. An older GPU has no TF32 in any setting."""
    names = ["ieee" if name == "none" else name for name in _fp32_settings(kind)]
    if kind == "cuda" and not has_tf32():
        names = ["ieee" if name == "tf32" else name for name in names]
    return Fp32(products=names[0], convolutions=names[1])


def has_tf32() -> bool:
    """Return whether the current GPU computes in TF32."""
    import torch

    return torch.cuda.get_device_capability()[0] >= FIRST_CAPABILITY_WITH_TF32


@contextmanager
def _fp32_products(kind: str, arithmetic: str) -> Iterator[None]:
    """Compute fp32 matrix products in ``arithmetic`` within the context, and restore the setting."""
    matmul, _ = _fp32_backends(kind)
    before = matmul.fp32_precision
    if before == arithmetic or {before, arithmetic} == {"none", "ieee"}:
        yield
        return
    matmul.fp32_precision = arithmetic
    try:
        yield
    finally:
        matmul.fp32_precision = before
