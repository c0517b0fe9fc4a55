import math
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from study.analysis.figures import roofline
from study.analysis.figures.style import Drawn
from study.artifacts.machine import Ceiling, Ceilings
from study.artifacts.samples import WARM_UP_REPETITIONS, Flops
from study.training.instruments import ceilings as measured_ceilings
from study.training.instruments.ceilings import REPETITIONS, measure_ceilings, repetitions
from study.training.instruments.clock import HostClock
from study.training.instruments.flops import flops_of_step
from study.training.loops.torch.loop import layer_groups, set_frozen
from study.training.models import build as models
from tests.conftest import ROOT, PlantedClock
from tests.errors import refused
from tests.unit.analysis.test_figure_text import CEILINGS

LOSS = nn.CrossEntropyLoss()
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")),
]


def counted(model: nn.Module, *shape: int, loss: nn.Module = LOSS) -> Flops:
    return flops_of_step(model, torch.zeros(shape), torch.zeros(shape[0], dtype=torch.long), loss)


@pytest.mark.parametrize(
    ("layers", "size", "first", "second"),
    [
        ([nn.Flatten(), nn.Linear(3 * 8 * 8, 7)], 8, 3 * 8 * 8 * 7, 0),
        ([nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 6, 5)], 32, 3 * 8 * 9 * 16 * 16, 8 * 6 * 25 * 12 * 12),
        ([nn.Conv2d(3, 64, 1), nn.Conv2d(64, 64, 3, groups=64)], 10, 3 * 64 * 10 * 10, 64 * 9 * 8 * 8),
        ([nn.Conv2d(3, 64, 1), nn.ConvTranspose2d(64, 64, 3, groups=64)], 10, 3 * 64 * 10 * 10, 64 * 9 * 10 * 10),
    ],
    ids=["linear", "convolution", "in groups", "transposed, in groups"],
)
def test_a_layer_costs_two_flops_a_weight_and_place_and_backward_as_much_by_weight_and_by_input(
    layers: list[nn.Module], size: int, first: int, second: int
) -> None:
    """By input except in the first layer: nothing asks for the gradient of the images."""
    flops = counted(nn.Sequential(*layers, nn.Flatten()), 2, 3, size, size)
    assert flops.forward_flop_per_image == 2 * (first + second)
    assert flops.backward_flop_per_image == 2 * (first + 2 * second)


def test_resnet18_costs_what_is_published() -> None:
    published = 1.81e9  # multiplications with their additions at 224 px (torchvision's table of models)
    flops = counted(models.backbone("resnet18", 0), 2, 3, 224, 224)
    assert flops.forward_flop_per_image == pytest.approx(2 * published, rel=0.02)
    assert 1.9 < flops.backward_flop_per_image / flops.forward_flop_per_image < 2


def test_an_image_costs_the_same_in_any_batch_and_less_backward_through_a_frozen_body() -> None:
    model = models.backbone("resnet18", 0)
    whole, many = counted(model, 2, 3, 64, 64), counted(model, 64, 3, 64, 64)
    assert whole.flop_per_image == many.flop_per_image
    assert whole.flop_per_byte < many.flop_per_byte  # the weights are moved once a step
    set_frozen(model, layer_groups(model), True)
    frozen = counted(model, 2, 3, 64, 64)
    assert frozen.forward_flop_per_image == whole.forward_flop_per_image
    # Batch normalisation trains: gradients pass through every layer, and the weights' own are not computed.
    assert 0.4 < frozen.backward_flop_per_image / whole.backward_flop_per_image < 0.6
    assert frozen.bytes_per_image < whole.bytes_per_image


def test_the_least_bytes_are_inputs_and_weights_with_gradients_and_moments() -> None:
    model = nn.Linear(30, 7, bias=False)
    trained = 4 * 30 * 7 * (1 + 2 + 2 * 2 + 1)  # read; gradient written, read; two moments read, written; written
    assert counted(model, 5, 30).bytes_per_image == pytest.approx(4 * 30 + trained / 5)
    frozen = counted(model.requires_grad_(False), 5, 30)
    assert frozen.bytes_per_image == pytest.approx(4 * 30 + 4 * 30 * 7 / 5)
    assert frozen.backward_flop_per_image == 0


@pytest.mark.parametrize("device", DEVICES)
def test_counting_changes_nothing(device: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten(), nn.Linear(4 * 6 * 6, 2))
    model.to(device)
    inputs, labels = torch.randn(4, 3, 8, 8, device=device), torch.tensor([0, 1, 0, 1], device=device)
    LOSS(model(inputs), labels).backward()

    def everything() -> list[torch.Tensor]:
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        return [
            *model.parameters(),
            *model.buffers(),
            *gradients,
            torch.get_rng_state(),
            *torch.cuda.get_rng_state_all(),
        ]

    before, copies = everything(), [tensor.clone() for tensor in everything()]
    flops_of_step(model, inputs, labels, LOSS)
    assert len(before) > 6 + 3 + 6  # parameters, buffers and gradients
    assert [id(tensor) for tensor in everything()[:15]] == [id(tensor) for tensor in before[:15]]
    assert all(torch.equal(now, copy) for now, copy in zip(everything(), copies, strict=True))
    assert model.training


def test_a_loss_with_weights_of_its_own_is_counted_also_where_the_caller_takes_no_gradients() -> None:
    with torch.no_grad():
        flops = counted(nn.Linear(30, 7), 5, 30, loss=nn.CrossEntropyLoss(weight=torch.ones(7)))
    assert flops.forward_flop_per_image == flops.backward_flop_per_image == 2 * 30 * 7


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


def test_a_planted_rate_is_found_and_no_sample_waits_for_the_device(
    clock: PlantedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two milliseconds pass in each call of the work, and a whole second where the host waits for the device."""
    monkeypatch.setattr(HostClock, "settle", lambda _: clock.pass_by(1.0))
    ceiling = measured_ceilings.sample(lambda: clock.pass_by(0.002), 6.0, HostClock())
    assert ceiling.samples == pytest.approx([3000] * len(ceiling.samples))
    assert len(ceiling.samples) >= measured_ceilings.FEWEST_SAMPLES
    assert ceiling.calls_per_sample * 0.002 >= measured_ceilings.SAMPLE_SECONDS * (1 - 1e-9)


def test_a_best_that_is_no_sample_is_refused() -> None:
    with refused("best", 3.0):
        Ceiling(best=3.0, samples=[1.0, 2.0], calls_per_sample=1)


def drawn(*points: tuple[str, float, float]) -> Drawn | None:
    """Points under 400 TFLOP/s and 4 TB/s, whose ridge is at 100 FLOP per byte."""
    return roofline.draw(list(points), CEILINGS, "NVIDIA H200")


def test_each_point_of_a_roofline_has_a_sign_and_a_name_of_its_own() -> None:
    points = [(f"torch, batch {2**n}", 100.0 + n, 4e13 * (1 + n / 1000)) for n in range(10)]
    found = drawn(*points)
    assert found
    (axes,) = found.figure.axes
    assert {text.get_text() for text in axes.texts} == {"matrix product: 400 TFLOP/s", "copy: 4.00 TB/s"}
    handles, labels = axes.get_legend_handles_labels()
    assert labels == [label for label, _, _ in reversed(points)]  # the highest first
    assert len({(line.get_marker(), line.get_color()) for line in axes.lines[2:]}) == len(handles) == 10
    assert all(f"{label}: " in found.caption for label, _, _ in points)


def test_the_caption_tells_the_share_of_the_roof_above_a_point_and_what_no_logarithm_shows() -> None:
    """The roof is the copy left of the ridge, and the product right of it."""
    found = drawn(("left", 10.0, 1e13), ("right", 1000.0, 1e14), ("none", 10.0, 0.0))
    assert found
    assert "left: 25.0%; right: 25.0%" in found.caption
    assert "Left out: 1" in found.caption


def test_there_is_no_roofline_without_a_point_or_with_one_above_the_roof() -> None:
    assert drawn(("none", math.nan, 1.0)) is None
    assert drawn(("left", 10.0, 1e14), ("right", 1000.0, 1e14)) is None


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


def test_the_reference_workload_changes_no_generator_and_no_setting() -> None:
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    seconds = repetitions(torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert len(seconds) == WARM_UP_REPETITIONS + REPETITIONS["cpu"]
    assert min(seconds) > 0
