"""The network of PyTorch's tutorial on data loading: images (n, 3, 224, 224) to scores (n,
classes)."""

import torch
from torch import nn

WIDTH, SIDE = 64, 7


class SmallTransformer(nn.Module):
    """Two convolutions and two transformer layers: so little work that the loader decides the
    time."""

    def __init__(self, classes: int) -> None:
        """``classes`` is the number of classes."""
        super().__init__()
        self.patches = nn.Sequential(
            nn.Conv2d(3, 32, 7, stride=4, padding=3),
            nn.ReLU(),
            nn.Conv2d(32, WIDTH, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(SIDE),
            nn.Flatten(2),
        )
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=128, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the scores (n, classes) of images (n, 3, s, s)."""
        tokens: torch.Tensor = self.layers(self.patches(images).transpose(1, 2))
        scores: torch.Tensor = self.head(tokens.mean(1))
        return scores


def small_transformer(classes: int) -> nn.Module:
    """Return the tutorial's network."""
    return SmallTransformer(classes)
