"""The networks of the published documents as torch modules."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from study.config.networks import NETWORKS, Pool

if TYPE_CHECKING:
    from torch import nn


def make(name: str, classes: int = 10) -> "nn.Module":
    """Return the network (n, channels, size, size) to (n, classes), with torch's own random initialisation."""
    from torch import nn

    network = NETWORKS[name]
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    channels, side, convolutions = network.channels, network.image_size, 0
    for layer in network.features:
        if isinstance(layer, Pool):
            layers[f"pool{len(layers)}"] = nn.MaxPool2d(2)
            side //= 2
            continue
        convolutions += 1
        layers[f"conv{convolutions}"] = nn.Conv2d(channels, layer.channels, layer.kernel, padding=layer.padding)
        layers[f"conv{convolutions}_relu"] = nn.ReLU()
        channels, side = layer.channels, side + 2 * layer.padding - layer.kernel + 1
    layers["flatten"] = nn.Flatten()
    layers.update(_dense(channels * side**2, network.dense, classes))
    return nn.Sequential(layers)


def _dense(inputs: int, widths: Sequence[int], classes: int) -> "OrderedDict[str, nn.Module]":
    from torch import nn

    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for number, width in enumerate(widths, start=1):
        layers[f"dense{number}"] = nn.Linear(inputs, width)
        layers[f"dense{number}_relu"] = nn.ReLU()
        inputs = width
    layers["head"] = nn.Linear(inputs, classes)
    return layers
