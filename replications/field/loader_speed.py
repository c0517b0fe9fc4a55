"""The job of PyTorch's tutorial on data loading: each image is 5 ms of waiting, and a small network
trains on it. A command for a study; it prints one line of JSON with the seconds of the epochs."""

import argparse
import json
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WAIT_SECONDS, CLASSES, SIDE, WIDTH = 0.005, 10, 224, 64


class Waiting(Dataset[tuple[torch.Tensor, int]]):
    """Images (3, 224, 224) of which each takes 5 ms, as if it were read and changed."""

    def __init__(self, images: int) -> None:
        """``images`` is their number."""
        self.images = images

    def __len__(self) -> int:
        return self.images

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        time.sleep(WAIT_SECONDS)
        return torch.full((3, SIDE, SIDE), number / self.images), number % CLASSES


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
            nn.AdaptiveAvgPool2d(7),
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


def main() -> None:
    """Train, and print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--stay", action="store_true", help="workers live for all epochs")
    parser.add_argument("--images", type=int, default=640)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=42)
    asked = parser.parse_args()
    torch.manual_seed(asked.seed)
    network = SmallTransformer(CLASSES).to(asked.device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    loader = DataLoader(
        Waiting(asked.images),
        batch_size=32,
        shuffle=True,
        num_workers=asked.workers,
        persistent_workers=asked.stay,
        pin_memory=asked.device == "cuda",
    )
    print("ready", flush=True)
    started, loss = time.perf_counter(), torch.zeros(())
    for _ in range(asked.epochs):
        for images, labels in loader:
            images, labels = (one.to(asked.device, non_blocking=True) for one in (images, labels))
            loss = nn.functional.cross_entropy(network(images), labels)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    final = loss.item()  # waits for the device
    print(json.dumps({"seconds": time.perf_counter() - started, "loss": final}))


if __name__ == "__main__":
    main()
