"""The labs' networks for colour images of 32 x 32 pixels: (n, 3, 32, 32) to (n, classes).

Report A prints its layers. Report B prints the numbers of parameters alone (0.03, 0.41 and 6.69
million), and the layers of ``lab2_...`` are ours.
"""

from itertools import pairwise

from torch import nn


def small_net(classes: int) -> nn.Module:
    """Return report A's small network; it has three times the parameters of its medium one."""
    return nn.Sequential(
        *_conv(3, 16, 5),
        nn.MaxPool2d(2),
        nn.Flatten(),
        *_dense(16 * 14**2, 120),
        _head(120, classes),
    )


def medium_net(classes: int) -> nn.Module:
    """Return report A's medium network."""
    return nn.Sequential(
        *_conv(3, 16, 5),
        nn.MaxPool2d(2),
        *_conv(16, 32, 5),
        nn.MaxPool2d(2),
        nn.Flatten(),
        *_dense(32 * 5**2, 120, 84),
        _head(84, classes),
    )


def large_net(classes: int) -> nn.Module:
    """Return report A's large network."""
    return nn.Sequential(
        *_conv(3, 32, 3, 1),
        *_conv(32, 64, 3, 1),
        nn.MaxPool2d(2),
        *_conv(64, 128, 3, 1),
        *_conv(128, 128, 3, 1),
        nn.MaxPool2d(2),
        nn.Flatten(),
        *_dense(128 * 8**2, 512, 128),
        _head(128, classes),
    )


def lab2_small(classes: int) -> nn.Module:
    """Return a network with the number of parameters of report B's small one."""
    return _lab2((16, 32, 32), 30, classes)


def lab2_medium(classes: int) -> nn.Module:
    """Return a network with the number of parameters of report B's medium one."""
    return _lab2((32, 64), 96, classes)


def lab2_large(classes: int) -> nn.Module:
    """Return a network with the number of parameters of report B's large one."""
    return _lab2((64, 128, 256, 512), 2496, classes)


def _lab2(channels: tuple[int, ...], width: int, classes: int) -> nn.Module:
    """Return convolutions of 3 x 3, each followed by a pool that halves the side, and two dense
    layers."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((3, *channels)):
        layers += [*_conv(inputs, outputs, 3, 1), nn.MaxPool2d(2)]
    side = 32 // 2 ** len(channels)
    return nn.Sequential(
        *layers, nn.Flatten(), *_dense(channels[-1] * side**2, width), _head(width, classes)
    )


def _conv(inputs: int, outputs: int, kernel: int, padding: int = 0) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(inputs, outputs, kernel, padding=padding), nn.ReLU()


def _dense(*widths: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return layers


def _head(width: int, classes: int) -> nn.Module:
    return nn.Linear(width, classes)
