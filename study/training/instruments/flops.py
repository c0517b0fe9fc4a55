"""The arithmetic of a training step in FLOPs, and the bytes that it moves at least.

A multiplication with its addition counts as two FLOPs throughout.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from study.artifacts.samples import Flops

ADAM_MOMENTS = 2
"""Number of values that Adam keeps for each trained parameter."""


def flops_of_step(
    model: nn.Module,
    inputs: torch.Tensor,
    labels: torch.Tensor,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
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
    from torch.utils.flop_counter import FlopCounterMode  # 60 MB that a run loads after its peak is read

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


def least_bytes(model: nn.Module, inputs: torch.Tensor, moments: int = ADAM_MOMENTS) -> int:
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


def _shadow(tensor: torch.Tensor) -> torch.Tensor:
    """Return a plain tensor on ``meta`` with the same shape, type and ``requires_grad``, even for a subclass.

    fastai's tensors are such a subclass.
    """
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta", requires_grad=tensor.requires_grad)


def _without_storage(call: Callable[..., torch.Tensor], *arguments: torch.Tensor) -> torch.Tensor:
    """Return the result of ``call``; if it is a module, shadows replace the tensors that it holds."""
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
    positions = math.prod((input_shape if transposed else grad_shape)[2:])
    return 2 * input_shape[0] * positions * math.prod(weight_shape) * (int(by_input) + int(by_weight))
