"""The documents' networks: their sizes, and the images that they take."""

import pytest
import torch

from study.base.errors import StudyError
from study.training.models import build as models

LAB, PROJECT = "replications.gpu_lab.networks", "replications.cifar10_project.networks:lenet_cifar"
MNIST = "replications.mnist_report.networks:mnist_cnn"


@pytest.mark.parametrize(
    ("name", "channels", "size", "parameters"),
    [
        (PROJECT, 3, 32, 62_006),
        (f"{LAB}:small_net", 3, 32, 378_866),
        (f"{LAB}:medium_net", 3, 32, 121_182),
        (f"{LAB}:large_net", 3, 32, 4_502_602),
        (MNIST, 1, 28, 60 + 550 + 32_128 + 12_900 + 8_080 + 810),
    ],
)
def test_a_documents_network_has_its_parameters(
    name: str, channels: int, size: int, parameters: int
) -> None:
    model = models.build(name, classes=10, channels=channels, image_size=size, seed=1)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters
    assert model(torch.zeros(2, channels, size, size)).shape == (2, 10)


@pytest.mark.parametrize(
    ("name", "millions"), [("lab2_small", 0.03), ("lab2_medium", 0.41), ("lab2_large", 6.69)]
)
def test_the_sizes_of_report_b_are_within_a_hundredth_of_what_it_prints(
    name: str, millions: float
) -> None:
    model = models.build(f"{LAB}:{name}", classes=10, channels=3, image_size=32, seed=1)
    assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(
        millions * 1e6, rel=0.01
    )
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize(
    ("name", "channels", "size"),
    [(f"{LAB}:medium_net", 3, 64), (PROJECT, 1, 32), (MNIST, 3, 28), (MNIST, 1, 32)],
)
def test_images_of_another_shape_are_refused_by_the_trial(
    name: str, channels: int, size: int
) -> None:
    with pytest.raises(
        StudyError, match=rf"fails on images of {channels} x {size} x {size}: .*dataset\.image_size"
    ):
        models.build(name, classes=10, channels=channels, image_size=size)


def test_mnists_pixels_are_in_0_to_1_as_the_report_has_them() -> None:
    first = models.build(MNIST, classes=10, channels=1, image_size=28).get_submodule("0")
    assert first(torch.tensor([-1.0, 0.0, 1.0])).tolist() == [0.0, 0.5, 1.0]
