"""The project's network for colour images of 32 x 32 pixels: (n, 3, 32, 32) to (n, classes)."""

from torch import nn


def lenet_cifar(classes: int) -> nn.Module:
    """Return LeNet with three channels, as torch's own tutorial has it."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5**2, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )
