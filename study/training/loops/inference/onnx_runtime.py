"""Inference by ONNX Runtime on a CPU: export from torch, static int8 quantisation, execution.

Reasons for ONNX Runtime, tried with torch 2.15 and 2.11 on torchvision's resnet18 in late 2026: it
makes an integer convolution of each of the 20, needs no compiler when it runs, and depends on
torch's version only in the export. torch.ao.quantization does the same and is deprecated, as are
its quantised types: torch announces their removal. torchao's PT2E quantiser for x86 raises an error
on this network, and needs torch.compile and so a C++ compiler. OpenVINO with NNCF works too, is
five times as large, and brings telemetry. None of them offers int8 convolutions on an NVIDIA GPU
without a further runtime.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
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
    """Return a function that runs the network in ONNX Runtime, and the number of executed operators
    of each kind.

    The function maps images (n, channels, s, s) float32 to scores (n, classes), both on the CPU.
    ``example`` holds at least two normalised images of that shape. With ``calibration``, batches of
    such images, weights and activations become int8, by the ranges that the network takes on these
    images.

    Raise :class:`RuntimeError` if the network has convolutions and none of them became an integer
    one.
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
    """Write the network as an ONNX file that takes any number of images, and return the path."""
    path = folder / "model.onnx"
    program: Any = torch.onnx.export(
        model,
        (example,),
        dynamo=True,
        input_names=[INPUT],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
    )
    onnx.save(program.model_proto, path)
    return path


def quantise(path: Path, calibration: Iterable[torch.Tensor]) -> Path:
    """Write the network in int8 and return the path.

    Each channel of a weight has a scale. Each activation has one, from its least and greatest
    value. The same images give the same scales, whatever their batches.
    """
    folded, quantised = path.with_name("folded.onnx"), path.with_name("int8.onnx")
    inputs = ({INPUT: batch.numpy()} for batch in calibration)
    # batch normalisation becomes part of the convolution
    quant_pre_process(path, folded, skip_symbolic_shape=True)
    quantize_static(
        folded,
        quantised,
        SimpleNamespace(get_next=lambda: next(inputs, None)),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return quantised


def start(path: Path) -> tuple[Any, dict[str, int]]:
    """Return a session with torch's number of threads, and the operators of the graph that it
    executes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = ERRORS_ALONE
    # Without VNNI instructions sums of 8-bit products saturate at 16 bits. This makes them correct,
    # if slower.
    options.add_session_config_entry("session.x64quantprecision", "1")
    executed = path.with_name("executed.onnx")
    options.optimized_model_filepath = str(executed)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session, dict(Counter(node.op_type for node in onnx.load(executed).graph.node))
