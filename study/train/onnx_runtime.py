"""Inference by ONNX Runtime on a CPU: export from torch, static int8 quantisation, execution.

Why ONNX Runtime. Tried with torch 2.15 and 2.11 on torchvision's resnet18, late in 2026: it makes an integer
convolution of each of the 20, needs no compiler when it runs, and knows nothing of torch's version but the export.
torch.ao.quantization does the same and is deprecated, its quantised types too: torch announces their removal.
torchao's PT2E quantiser for x86 raises on this network, and needs torch.compile and so a C++ compiler. OpenVINO with
NNCF works as well, is five times as large, and brings telemetry. Neither offers int8 convolutions on an NVIDIA GPU
without a further runtime.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn

Infer = Callable[[torch.Tensor], torch.Tensor]
INPUT = "images"
ERRORS_ALONE = 3


def load(
    model: nn.Module, example: torch.Tensor, calibration: Iterable[torch.Tensor] | None
) -> tuple[Infer, dict[str, int]]:
    """A trained network as ONNX Runtime executes it, and how many operators of each kind that are.

    ``example``: normalised images (n, channels, s, s) on the CPU, at least two. With ``calibration``, batches of the
    same, weights and activations become int8, by the ranges that the network takes on these images.

    Raises :class:`RuntimeError` where the network has convolutions and none of them became an integer one.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = export(model, example, folder)
        if calibration is not None:
            path = quantise(path, calibration)
        session, operators = start(path)
    if calibration is not None and "Conv" in operators and "QLinearConv" not in operators:
        raise RuntimeError("quantisation left every convolution in floating point")
    return lambda images: torch.from_numpy(session.run(None, {INPUT: images.numpy()})[0]), operators


def export(model: nn.Module, example: torch.Tensor, folder: Path) -> Path:
    """The network as an ONNX file that takes any number of images."""
    path = folder / "model.onnx"
    program: Any = torch.onnx.export(
        model, (example,), dynamo=True, input_names=[INPUT], dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    onnx.save(program.model_proto, path)
    return path


def quantise(path: Path, calibration: Iterable[torch.Tensor]) -> Path:
    """The network in int8: a scale for each channel of a weight, one for each activation from its least and greatest
    value. The same images give the same scales, in whatever batches they come."""
    folded, quantised = path.with_name("folded.onnx"), path.with_name("int8.onnx")
    quant_pre_process(path, folded, skip_symbolic_shape=True)  # batch normalisation becomes part of the convolution
    quantize_static(
        folded,
        quantised,
        _Reader(iter(calibration)),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return quantised


class _Reader:
    """Hands over the calibration images, as ONNX Runtime asks for them."""

    def __init__(self, batches: Iterator[torch.Tensor]) -> None:
        self.batches = batches

    def get_next(self) -> dict[str, Any] | None:
        """The next batch by the input's name; None after the last."""
        batch = next(self.batches, None)
        return None if batch is None else {INPUT: batch.numpy()}


def start(path: Path) -> tuple[Any, dict[str, int]]:
    """A session with as many threads as torch has, and the operators of the graph that it executes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = ERRORS_ALONE
    # Without VNNI instructions sums of products of 8 bits saturate at 16: correct sums, on every CPU, if slower.
    options.add_session_config_entry("session.x64quantprecision", "1")
    executed = path.with_name("executed.onnx")
    options.optimized_model_filepath = str(executed)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session, dict(Counter(node.op_type for node in onnx.load(executed).graph.node))
