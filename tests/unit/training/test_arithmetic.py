import math
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from study.analysis.figures import roofline
from study.artifacts.machine import Ceiling, Ceilings
from study.artifacts.samples import Flops
from study.training.instruments import ceilings as measured_ceilings
from study.training.instruments.ceilings import measure_ceilings
from study.training.instruments.clock import HostClock
from study.training.instruments.flops import flops_of_step
from study.training.loops.torch.loop import layer_groups, set_frozen
from study.training.models import build as models
from tests.conftest import ROOT

LOSS = nn.CrossEntropyLoss()
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")),
]


def counted(model: nn.Module, *shape: int) -> Flops:
    return flops_of_step(model, torch.zeros(shape), torch.zeros(shape[0], dtype=torch.long), LOSS)


def small_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def test_a_linear_layer_costs_two_flops_a_weight_and_image() -> None:
    flops = counted(nn.Linear(30, 7), 5, 30)
    assert flops.forward_flop_per_image == 2 * 30 * 7
    assert flops.backward_flop_per_image == 2 * 30 * 7  # by weight alone: nothing asks for the input's gradient


def test_a_convolution_costs_two_flops_a_weight_and_place() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 6, 5), nn.Flatten())
    first, second = 2 * (3 * 8 * 3 * 3) * 16 * 16, 2 * (8 * 6 * 5 * 5) * 12 * 12
    flops = counted(model, 4, 3, 32, 32)
    assert flops.forward_flop_per_image == first + second
    assert flops.backward_flop_per_image == first + 2 * second


@pytest.mark.parametrize("kind", [nn.Conv2d, nn.ConvTranspose2d])
def test_a_grouped_convolution_costs_backward_no_more_than_twice_forward(kind: Any) -> None:
    model = nn.Sequential(nn.Conv2d(3, 64, 1), kind(64, 64, 3, groups=64), nn.Flatten())
    first = 2 * 3 * 64 * 10 * 10
    places = 8 * 8 if kind is nn.Conv2d else 10 * 10
    depthwise = 2 * 64 * 3 * 3 * places
    flops = counted(model, 2, 3, 10, 10)
    assert flops.forward_flop_per_image == first + depthwise
    assert flops.backward_flop_per_image == first + 2 * depthwise


def test_resnet18_costs_what_is_published() -> None:
    published = 1.81e9  # multiplications with their additions at 224 px (torchvision's table of models)
    flops = counted(models.backbone("resnet18", 0), 2, 3, 224, 224)
    assert flops.forward_flop_per_image == pytest.approx(2 * published, rel=0.02)
    assert 1.9 < flops.backward_flop_per_image / flops.forward_flop_per_image < 2


def test_the_count_per_image_does_not_depend_on_the_batch() -> None:
    model = models.backbone("resnet18", 0)
    few, many = counted(model, 2, 3, 64, 64), counted(model, 64, 3, 64, 64)
    assert few.flop_per_image == many.flop_per_image
    assert few.flop_per_byte < many.flop_per_byte  # the weights are moved once a step


def test_a_frozen_body_costs_less_backward_and_the_same_forward() -> None:
    model = models.backbone("resnet18", 0)
    whole = counted(model, 2, 3, 64, 64)
    set_frozen(model, layer_groups(model), True)
    frozen = counted(model, 2, 3, 64, 64)
    assert frozen.forward_flop_per_image == whole.forward_flop_per_image
    # Batch normalisation trains: gradients pass through every layer, and the weights' own are not computed.
    assert 0.4 < frozen.backward_flop_per_image / whole.backward_flop_per_image < 0.6
    assert frozen.bytes_per_image < whole.bytes_per_image


def test_a_wholly_frozen_model_costs_nothing_backward() -> None:
    assert counted(small_network().requires_grad_(False), 2, 3, 8, 8).backward_flop_per_image == 0


def test_the_least_bytes_are_inputs_and_weights_with_gradients_and_moments() -> None:
    model = nn.Linear(30, 7, bias=False)
    trained = 4 * 30 * 7 * (1 + 2 + 2 * 2 + 1)  # read; gradient written, read; two moments read, written; written
    assert counted(model, 5, 30).bytes_per_image == pytest.approx(4 * 30 + trained / 5)
    model.requires_grad_(False)
    assert counted(model, 5, 30).bytes_per_image == pytest.approx(4 * 30 + 4 * 30 * 7 / 5)


def everything(model: nn.Module) -> dict[str, torch.Tensor]:
    """Copies of what counting could change."""
    state = {f"state {name}": tensor for name, tensor in model.state_dict().items()}
    gradients = {f"gradient {name}": p.grad for name, p in model.named_parameters() if p.grad is not None}
    generators = {"random cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        generators["random cuda"] = torch.cuda.get_rng_state()
    return {name: tensor.clone() for name, tensor in (state | gradients | generators).items()}


@pytest.mark.parametrize("device", DEVICES)
def test_counting_changes_nothing(device: str) -> None:
    model = small_network().to(device)
    inputs, labels = torch.randn(4, 3, 8, 8, device=device), torch.tensor([0, 1, 0, 1], device=device)
    LOSS(model(inputs), labels).backward()
    tensors = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    before = everything(model)
    flops_of_step(model, inputs, labels, LOSS)
    after = everything(model)
    assert "state 1.running_mean" in before and "gradient 0.weight" in before
    assert before.keys() == after.keys()
    assert [name for name in before if not torch.equal(before[name], after[name])] == []
    assert {id(tensor) for tensor in (*model.parameters(), *model.buffers())} == tensors
    assert model.training


def test_a_loss_with_weights_of_its_own_is_counted() -> None:
    loss = nn.CrossEntropyLoss(weight=torch.ones(7))
    inputs, labels = torch.zeros(5, 30), torch.zeros(5, dtype=torch.long)
    assert flops_of_step(nn.Linear(30, 7), inputs, labels, loss).forward_flop_per_image == 2 * 30 * 7


def test_gradients_are_counted_where_the_caller_takes_none() -> None:
    with torch.no_grad():
        assert counted(nn.Linear(30, 7), 5, 30).backward_flop_per_image > 0


@pytest.mark.parametrize("device", DEVICES)
def test_ceilings_are_positive_and_keep_their_samples(device: str) -> None:
    settings, state = torch.get_float32_matmul_precision(), torch.get_rng_state()
    ceilings = measure_ceilings(torch.device(device), "fp32")
    for ceiling in (ceilings.product_flop_per_second, ceilings.copy_bytes_per_second):
        assert len(ceiling.samples) >= measured_ceilings.FEWEST_SAMPLES
        assert all(0 < value <= ceiling.best for value in ceiling.samples)
    assert ceilings.product_arithmetic in ("ieee", "tf32", "bf16")
    assert Ceilings.model_validate_json(ceilings.model_dump_json()) == ceilings
    assert torch.get_float32_matmul_precision() == settings
    assert torch.equal(torch.get_rng_state(), state)


@pytest.fixture
def backends() -> Iterator[Any]:
    """torch's fp32 settings on a CPU, put back at the end: of ``matmul`` and of ``conv``."""
    settings: Any = torch.backends.mkldnn
    before = settings.matmul.fp32_precision, settings.conv.fp32_precision
    yield settings
    settings.matmul.fp32_precision, settings.conv.fp32_precision = before


@pytest.mark.parametrize("settings", [("none", "tf32"), ("tf32", "ieee")])
def test_fp32_is_measured_in_the_faster_of_the_two_settings(
    settings: tuple[str, str], backends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends.matmul.fp32_precision, backends.conv.fp32_precision = settings
    stock, used = torch.mm, set()

    def product(*matrices: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        used.add(backends.matmul.fp32_precision)
        return stock(*matrices, out=out)

    monkeypatch.setattr(torch, "mm", product)
    monkeypatch.setattr(measured_ceilings, "COPY_BYTES", {"cpu": 2**10})
    monkeypatch.setattr(measured_ceilings, "SAMPLING_SECONDS", 0.001)
    monkeypatch.setattr(measured_ceilings, "PRODUCT_SIDES", {"cpu": (8,)})
    ceilings = measure_ceilings(torch.device("cpu"), "fp32")
    assert used == {"tf32"} and ceilings.product_arithmetic == "tf32"
    assert (ceilings.matmul_fp32_precision, ceilings.convolution_fp32_precision) == settings
    assert backends.matmul.fp32_precision == settings[0]  # put back


class PlantedClock(HostClock):
    """Two milliseconds pass in each call of the work, and a whole second where the host waits for the device."""

    def __init__(self) -> None:
        self.now = 0.0

    def mark(self) -> float:
        return self.now

    def settle(self) -> None:
        self.now += 1.0

    def work(self) -> None:
        self.now += 0.002


def test_a_planted_rate_is_found_and_no_sample_waits_for_the_device() -> None:
    clock = PlantedClock()
    ceiling = measured_ceilings.sample(clock.work, 6.0, clock)
    assert ceiling.samples == pytest.approx([3000] * len(ceiling.samples))
    assert len(ceiling.samples) >= measured_ceilings.FEWEST_SAMPLES
    assert ceiling.calls_per_sample * 0.002 >= measured_ceilings.SAMPLE_SECONDS * (1 - 1e-9)


def test_a_best_that_is_no_sample_is_refused() -> None:
    with pytest.raises(ValidationError, match="largest sample is 2"):
        Ceiling(best=3.0, samples=[1.0, 2.0], calls_per_sample=1)


def planted(product: float = 4e14, copy: float = 4e12) -> Ceilings:
    return Ceilings(
        device="cuda",
        precision="fp32",
        threads=1,
        matmul_fp32_precision="none",
        convolution_fp32_precision="tf32",
        product_arithmetic="tf32",
        product_side=8192,
        copy_bytes=2**30,
        product_flop_per_second=Ceiling(best=product, samples=[product], calls_per_sample=1),
        copy_bytes_per_second=Ceiling(best=copy, samples=[copy], calls_per_sample=1),
    )


def test_the_roof_is_the_copy_left_of_the_ridge_and_the_product_right_of_it() -> None:
    ceilings = planted()
    assert ceilings.attainable(10) == pytest.approx(4e13)
    assert ceilings.attainable(1000) == pytest.approx(4e14)


def test_each_point_of_a_roofline_has_a_sign_and_a_name_of_its_own() -> None:
    points = [(f"torch, batch {2**n}", 100.0 + n, 4e13 * (1 + n / 1000)) for n in range(10)]
    drawn = roofline.draw(points, planted(), "NVIDIA H200")
    assert drawn is not None
    (axes,) = drawn.figure.axes
    assert {text.get_text() for text in axes.texts} == {"matrix product: 400 TFLOP/s", "copy: 4.00 TB/s"}
    handles, labels = axes.get_legend_handles_labels()
    assert labels == [label for label, _, _ in reversed(points)]  # the highest first
    assert len({(line.get_marker(), line.get_color()) for line in axes.lines[2:]}) == len(handles) == 10
    assert all(f"{label}: " in drawn.caption for label, _, _ in points)


def test_the_caption_tells_the_share_of_the_ceiling_above_the_point() -> None:
    drawn = roofline.draw([("left", 10.0, 1e13), ("right", 1000.0, 1e14)], planted(), "NVIDIA H200")
    assert drawn is not None
    assert "left: 25.0%; right: 25.0%" in drawn.caption


def test_there_is_no_roofline_where_a_point_lies_above_the_roof() -> None:
    assert roofline.draw([("left", 10.0, 1e14), ("right", 1000.0, 1e14)], planted(), "NVIDIA H200") is None


def test_what_a_logarithm_cannot_show_is_left_out_and_told() -> None:
    drawn = roofline.draw([("good", 10.0, 1e13), ("none", 10.0, 0.0)], planted(), "NVIDIA H200")
    assert drawn is not None and "Left out: 1" in drawn.caption
    assert roofline.draw([("none", math.nan, 1.0)], planted(), "NVIDIA H200") is None


def test_a_precision_decides_what_fp32_is_computed_in_and_torchs_older_switches_stay_readable() -> None:
    """In a process of its own, for the switches are torch's; its own compiler still reads the older ones."""
    script = """
import torch
from study.training.instruments.machine import fp32_in_use, has_tf32, set_fp32
import study.training.instruments.machine as switches
for tf32 in (True, False):
    switches.has_tf32 = lambda: tf32
    for precision in ("auto", "fp32", "tf32", "bf16"):
        torch.set_float32_matmul_precision("highest"); torch.backends.cudnn.allow_tf32 = True  # as torch starts
        set_fp32(precision)
        used = fp32_in_use("cuda")
        older = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        print(precision, used.products, used.convolutions, *older)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines() == [
        "auto ieee tf32 False True",
        "fp32 ieee ieee False False",
        "tf32 tf32 tf32 True True",
        "bf16 ieee tf32 False True",
        # A GPU that has none, as the T4 of the documents.
        "auto ieee ieee False True",
        "fp32 ieee ieee False False",
        "tf32 ieee ieee True True",
        "bf16 ieee ieee False True",
    ]
