"""The report's network for grey images of 28 x 28 pixels: (n, 1, 28, 28) to (n, classes)."""

import torch
from torch import nn


class ToShare(nn.Module):
    """Pixels in -1 to 1, as every model of a user gets them, as the report's: in 0 to 1."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the rescaled images."""
        return images * 0.5 + 0.5


def mnist_cnn(classes: int) -> nn.Module:
    """Return the report's network, whose layers it prints."""
    return nn.Sequential(
        ToShare(),
        nn.Conv2d(1, 6, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 10, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(10 * 5**2, 128),
        nn.ReLU(),
        nn.Linear(128, 100),
        nn.ReLU(),
        nn.Linear(100, 80),
        nn.ReLU(),
        nn.Linear(80, classes),
    )
