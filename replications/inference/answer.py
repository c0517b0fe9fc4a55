"""Train a network on images that are drawn here, then time how fast it answers: a command for a
study, which runs alone as well.

It prints ``ready`` when the timed batches begin, and one line of JSON in the end. It needs torch
and torchvision; ``--precision fp32_onnx`` and ``int8`` need onnx, onnxruntime and onnxscript, too.
"""

import argparse
import hashlib
import importlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torchvision
from torch import nn
from torch.nn.functional import cross_entropy, interpolate

Infer = Callable[[torch.Tensor], torch.Tensor]
"""Function from images (n, channels, s, s) to scores (n, classes), both on the device."""
Images = tuple[torch.Tensor, torch.Tensor]
"""Images (n, channels, s, s) float32 in -1 to 1, and their labels (n,) int64."""
PRECISIONS = ("fp32", "tf32", "bf16", "fp32_onnx", "int8")
VALID_EACH = 5
"""Of so many images of a class one is for validation, and the others for training."""
INPUT, ERRORS_ALONE = "images", 3


class Refused(Exception):
    """What was asked for cannot be executed, in words."""


def asked_for(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the arguments. Raise :class:`Refused` for those that do not go together."""
    parser = argparse.ArgumentParser(description=__doc__)
    say = parser.add_argument
    say("--model", default="resnet18", help="of torchvision, or package.module:factory")
    say("--device", choices=("cpu", "cuda"), default="cpu")
    say("--seed", type=int, default=42, help="of the images, the weights and their order")
    say("--classes", type=int, default=2)
    say("--images", type=int, default=640, help=f"one of {VALID_EACH} is for validation")
    say("--image-size", type=int, default=64)
    say("--channels", type=int, default=3)
    say("--epochs", type=int, default=2, help="of training, in fp32; 0: random weights")
    say("--train-batch-size", type=int, default=16)
    say("--learning-rate", type=float, default=2e-3)
    say("--precision", choices=PRECISIONS, default="fp32")
    say("--batch-size", type=int, default=1)
    say("--batches", type=int, default=100, help="at least, and one pass over all images")
    say("--warm-up-batches", type=int, default=10)
    say("--calibration-images", type=int, default=128, help="from which int8 takes its ranges")
    say("--channels-last", action="store_true")
    say("--compile", action="store_true")
    say("--cuda-graph", action="store_true", help="record a batch, and replay it")
    given = parser.parse_args(arguments)
    onnx = given.precision in ("fp32_onnx", "int8")
    if given.device == "cuda" and not torch.cuda.is_available():
        raise Refused("--device cuda: torch sees no GPU")
    if onnx and given.device != "cpu":
        raise Refused(f"--precision {given.precision}: ONNX Runtime executes it, on a CPU only")
    if onnx and (given.channels_last or given.compile):
        why = "ONNX Runtime has an order and a compiler of its own"
        raise Refused(f"--channels-last, --compile: not with --precision {given.precision}: {why}")
    if given.device == "cpu" and (given.precision == "tf32" or given.cuda_graph):
        raise Refused("--precision tf32, --cuda-graph: only a GPU has them")
    least = {"classes": 2, "batch_size": 1, "batches": 1, "train_batch_size": 2, "image_size": 8}
    least |= {"epochs": 0, "warm_up_batches": 0, "calibration_images": 2, "channels": 1}
    for name, number in {**least, "images": given.classes * VALID_EACH}.items():
        if getattr(given, name) < number:
            raise Refused(f"--{name.replace('_', '-')}: {number} is the least")
    return given


def drawn(given: argparse.Namespace) -> tuple[Images, Images]:
    """Return the images for training and for validation. An image is its class's smooth template,
    moved and scaled, below another template and noise: a network has to learn its shapes."""
    draw, side = torch.Generator().manual_seed(given.seed), given.image_size
    templates = torch.zeros(given.classes, given.channels, side, side)
    for octave, cells in enumerate((4, 7)):
        grid = torch.rand(given.classes, given.channels, cells, cells, generator=draw) * 2 - 1
        smooth = interpolate(grid, size=(side, side), mode="bicubic", align_corners=False)
        templates += smooth / 1.6 ** (octave + 1)
    numbers, reach = torch.arange(given.images), max(side // 6, 1)
    labels = numbers % given.classes
    images = torch.empty(given.images, given.channels, side, side)
    for number, label in enumerate(labels.tolist()):
        down, right = torch.randint(-reach, reach + 1, (2,), generator=draw).tolist()
        other = templates[int(torch.randint(given.classes, (1,), generator=draw))]
        share = 0.5 + 0.5 * float(torch.rand(1, generator=draw))
        signal = templates[label].roll((down, right), (1, 2)) * share + 0.45 * other
        noise = torch.randn(signal.shape, generator=draw) * 0.35
        images[number] = (0.55 * (signal + noise)).clamp(-1, 1)
    valid = numbers // given.classes % VALID_EACH == VALID_EACH - 1
    return (images[~valid], labels[~valid]), (images[valid], labels[valid])


def built(given: argparse.Namespace) -> nn.Module:
    """Return the network with random weights from the seed."""
    torch.manual_seed(given.seed)
    module, _, factory = given.model.partition(":")
    if factory:
        sys.path.insert(0, str(Path.cwd()))  # Python itself looks beside this file
        own: nn.Module = getattr(importlib.import_module(module), factory)(classes=given.classes)
        return own
    if module not in torchvision.models.list_models(torchvision.models):
        raise Refused(f"--model {module}: torchvision has no such classifier")
    if given.channels != 3:
        raise Refused(f"--channels {given.channels}: torchvision's networks take 3")
    options = {"aux_logits": False} if module in ("googlenet", "inception_v3") else {}
    made: nn.Module = torchvision.models.get_model(
        module, weights=None, num_classes=given.classes, **options
    )
    return made


def train(model: nn.Module, images: Images, given: argparse.Namespace) -> None:
    """Train in fp32 with deterministic algorithms, so that every precision asks the same
    weights."""
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.backends.cudnn.allow_tf32 = False
    pixels, labels = (tensor.to(given.device) for tensor in images)
    size = min(given.train_batch_size, len(labels))
    steps, order = len(labels) // size, torch.Generator().manual_seed(given.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.learning_rate)
    rates = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, given.learning_rate, total_steps=max(2, given.epochs * steps)
    )
    for _ in range(given.epochs):
        chosen = torch.randperm(len(labels), generator=order).to(given.device)
        for step in range(steps):  # each is full: a batch of one has no variance to normalise by
            batch = chosen[step * size : (step + 1) * size]
            optimizer.zero_grad()
            torch.autograd.backward(cross_entropy(model.train()(pixels[batch]), labels[batch]))
            optimizer.step()
            rates.step()
    if given.epochs:
        settle(model, pixels, size)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = False, True


@torch.no_grad()
def settle(model: nn.Module, pixels: torch.Tensor, size: int) -> None:
    """Let each batch normalisation take the mean over one pass: after a few steps its own, which
    follows slowly, is still near its start, and the network answers as if it had learned
    nothing."""
    for layer in model.modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.reset_running_stats()
            layer.momentum = None
    for step in range(len(pixels) // size):
        model.train()(pixels[step * size : (step + 1) * size])


def accuracy_of(infer: Infer, images: Images, size: int, device: str) -> float:
    """Return the share of right answers."""
    hits, (pixels, labels) = 0, images
    for first in range(0, len(labels), size):
        answers = infer(pixels[first : first + size].to(device)).argmax(1).cpu()
        hits += int((answers == labels[first : first + size]).sum())
    return hits / len(labels)


def converted(model: nn.Module, train: Images, given: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Return the network in the precision, a function that makes its input of images, and the
    share of its convolutions that are executed on integers, None for no convolution of theirs."""
    if given.precision in ("fp32_onnx", "int8"):
        infer, operators = in_onnx_runtime(model, train[0], given)
        convolutions = {name: count for name, count in operators.items() if name.endswith("Conv")}
        on_integers = convolutions.get("QLinearConv")
        share = on_integers / sum(convolutions.values()) if on_integers else None
        return infer, lambda images: images, share
    torch.set_float32_matmul_precision("high" if given.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = given.precision == "tf32"
    kind = torch.bfloat16 if given.precision == "bf16" else torch.float32
    order = torch.channels_last if given.channels_last else torch.contiguous_format

    def taken(images: torch.Tensor) -> torch.Tensor:
        return images.to(kind).contiguous(memory_format=order)

    return model.to(kind).to(memory_format=order), taken, None


def in_onnx_runtime(
    model: nn.Module, train: torch.Tensor, given: argparse.Namespace
) -> tuple[Infer, dict[str, int]]:
    """Return the network in ONNX Runtime, and the number of executed operators of each kind.

    It makes an integer convolution of each in a ResNet, and needs no compiler when it runs. int8
    takes the ranges of activations from training images that are spread evenly over the set: each
    channel of a weight has a scale, each activation one.
    """
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401  torch's export needs it, and says so late
        from onnxruntime import quantization
        from onnxruntime.quantization.shape_inference import quant_pre_process
    except ImportError as error:
        raise Refused(f"--precision {given.precision}: needs {error.name}") from None
    with tempfile.TemporaryDirectory() as name:
        path, folded = Path(name, "model.onnx"), Path(name, "folded.onnx")
        program: Any = torch.onnx.export(
            model,
            (train[:2],),
            dynamo=True,
            verbose=False,
            input_names=[INPUT],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
        )
        onnx.save(program.model_proto, path)
        if given.precision == "int8":
            count = min(given.calibration_images, len(train))
            spread = train[torch.arange(count) * len(train) // count]
            ranges = ({INPUT: batch.numpy()} for batch in torch.chunk(spread, -(-count // 32)))
            quant_pre_process(path, folded, skip_symbolic_shape=True)  # folds normalisation
            path = path.with_name("int8.onnx")
            quantization.quantize_static(
                folded,
                path,
                SimpleNamespace(get_next=lambda: next(ranges, None)),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
            )
        options, executed = onnxruntime.SessionOptions(), path.with_name("executed.onnx")
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = ERRORS_ALONE
        # Without VNNI instructions sums of 8-bit products saturate at 16 bits. This makes them
        # correct, if slower.
        options.add_session_config_entry("session.x64quantprecision", "1")
        options.optimized_model_filepath = str(executed)
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(str(path), options, providers=providers)
        operators = Counter(node.op_type for node in onnx.load(executed).graph.node)
    if given.precision == "int8" and "Conv" in operators and "QLinearConv" not in operators:
        raise Refused("--precision int8: every convolution stayed in floating point")
    return lambda images: torch.from_numpy(session.run(None, {INPUT: images.numpy()})[0]), operators


def made_fast(infer: Any, example: torch.Tensor, given: argparse.Namespace) -> Infer:
    """Return the network compiled, or recorded as a CUDA graph, or both. All batches have the shape
    of ``example``."""
    if given.compile:
        # Whether work is recorded is the other argument's to say.
        options: Any = {"triton.cudagraphs": False} if given.device == "cuda" else None
        infer = torch.compile(infer, options=options)
        infer(example)
    return recorded(infer, example.clone()) if given.cuda_graph else infer


def recorded(infer: Infer, inputs: torch.Tensor) -> Infer:
    """Return the network as a CUDA graph, which one launch replays. It reads each batch at one
    place: to copy it there is a part of the time."""
    stream = torch.cuda.Stream(inputs.device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        infer(inputs)  # no recording can hold a search for algorithms
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scores = infer(inputs)

    def replay(images: torch.Tensor) -> torch.Tensor:
        inputs.copy_(images)
        graph.replay()
        return scores

    return replay


def batches_of(images: Images, size: int, first: int, last: int) -> Iterator[Images]:
    """Yield full batches: after the last image comes the first."""
    for number in range(first, last):
        chosen = torch.arange(number * size, (number + 1) * size) % len(images[1])
        yield images[0][chosen], images[1][chosen]


def answered(infer: Infer, taken: Infer, valid: Images, given: argparse.Namespace) -> Any:
    """Return the seconds of each timed batch, and the accuracy, in which each image counts once.
    The device is at rest before and after a batch, which lies there already."""
    rest: Callable[[], None] = torch.cuda.synchronize if given.device == "cuda" else lambda: None
    count = max(given.batches, -(-len(valid[1]) // given.batch_size))
    seconds, hits = list[float](), list[torch.Tensor]()
    for images, labels in batches_of(valid, given.batch_size, -given.warm_up_batches, count):
        inputs = taken(images.to(given.device))
        if len(hits) == given.warm_up_batches:
            print("ready", flush=True)
        rest()
        started = time.perf_counter()
        scores = infer(inputs)
        rest()
        seconds.append(round(time.perf_counter() - started, 9))
        hits.append(scores.argmax(1).cpu() == labels)
    right = torch.cat(hits[given.warm_up_batches :])[: len(valid[1])]
    return seconds[given.warm_up_batches :], float(right.double().mean())


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """Train and ask a network, and return what is printed of it."""
    train_images, valid = drawn(given)
    model = built(given).to(given.device)
    train(model, train_images, given)
    model.eval()
    weights = hashlib.sha256()
    for tensor in model.state_dict().values():
        weights.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    parameters = sum(parameter.numel() for parameter in model.parameters())
    with torch.no_grad():
        fp32_accuracy = accuracy_of(model, valid, given.train_batch_size, given.device)
        started = time.perf_counter()
        infer, taken, share = converted(model, train_images, given)
    with torch.inference_mode():
        example = taken(next(batches_of(valid, given.batch_size, 0, 1))[0].to(given.device))
        infer = made_fast(infer, example, given)
        conversion_seconds = time.perf_counter() - started
        seconds, accuracy = answered(infer, taken, valid, given)
    return {
        "batch_seconds": seconds,
        "thousand_images_seconds": 1000 * sum(seconds) / (len(seconds) * given.batch_size),
        "accuracy": accuracy,
        "fp32_accuracy": fp32_accuracy,
        "int8_convolutions": share,
        "conversion_seconds": conversion_seconds,
        "parameters": parameters,
        "weights_sha256": weights.hexdigest(),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print what is measured; return the exit code, 2 for what cannot be executed."""
    try:
        print(json.dumps(measured(asked_for(arguments))), flush=True)
    except Refused as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
