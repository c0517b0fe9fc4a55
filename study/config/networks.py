"""The small networks of the published documents, as tables of layers. The host reads the tables without torch.

A ReLU follows every convolution and every dense layer but the last, and a pool halves height and width. If a document
prints the layers, they are its own. The second lab gives only the sizes, and the layers are ours.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Conv:
    """A convolution with a square kernel and stride 1."""

    channels: int
    kernel: int
    padding: int = 0


@dataclass(frozen=True)
class Pool:
    """Maximum over squares of 2 x 2."""


@dataclass(frozen=True)
class Network:
    """Layers from images (channels, image_size, image_size) to classes."""

    channels: int
    image_size: int
    features: tuple[Conv | Pool, ...]
    dense: tuple[int, ...]
    """Widths of the dense layers before the last one, which has one output per class."""
    mean: float = 0.5
    std: float = 0.5
    """Divisor of pixels in 0 to 1, after the document's ``mean`` is subtracted."""


POOL = Pool()
NETWORKS = {
    "lenet_cifar": Network(3, 32, (Conv(6, 5), POOL, Conv(16, 5), POOL), (120, 84)),
    "small_net": Network(3, 32, (Conv(16, 5), POOL), (120,)),
    "medium_net": Network(3, 32, (Conv(16, 5), POOL, Conv(32, 5), POOL), (120, 84)),
    "large_net": Network(
        3, 32, (Conv(32, 3, 1), Conv(64, 3, 1), POOL, Conv(128, 3, 1), Conv(128, 3, 1), POOL), (512, 128)
    ),
    "mnist_cnn": Network(1, 28, (Conv(6, 3), POOL, Conv(10, 3), POOL), (128, 100, 80), 0.0, 1.0),
    "lab2_small": Network(3, 32, (Conv(16, 3, 1), POOL, Conv(32, 3, 1), POOL, Conv(32, 3, 1), POOL), (30,)),
    "lab2_medium": Network(3, 32, (Conv(32, 3, 1), POOL, Conv(64, 3, 1), POOL), (96,)),
    "lab2_large": Network(
        3,
        32,
        (Conv(64, 3, 1), POOL, Conv(128, 3, 1), POOL, Conv(256, 3, 1), POOL, Conv(512, 3, 1), POOL),
        (2496,),
    ),
}
AUXILIARY = ("googlenet", "inception_v3")
"""torchvision's models with outputs beside the last layer's, which are left out here."""


def is_own(name: str) -> bool:
    """Return whether a model's name is the import path of a user's own."""
    return ":" in name


def is_transfer(name: str) -> bool:
    """Return whether the model is torchvision's: a body with a new head. All others are trained whole."""
    return not is_own(name) and name not in NETWORKS


def misfit(name: str, channels: int, image_size: int) -> str | None:
    """Return why the model ``name`` cannot take such images, or None if it can, or if its layers fit any size."""
    network = NETWORKS.get(name)
    if network is None:
        return None
    for key, given, wanted in (
        ("channels", channels, network.channels),
        ("image_size", image_size, network.image_size),
    ):
        if given != wanted:
            return (
                f"dataset.{key}: {given} is not allowed with model.name {name}, whose layers are made for one shape of "
                f"images: {wanted}"
            )
    return None
