"""On real photographs and MNIST, where they lie beside the checkout. Never needed: skipped where they are absent."""

import json
from pathlib import Path

import pytest

from study.config.sections import Dataset
from study.data.decode import decode
from study.data.sources import open_set, source_of
from tests.conftest import ROOT, UNWATCHED
from tests.workflow.conftest import NO_NETWORK, copy_checkout

pytestmark = pytest.mark.thorough

DATA = ROOT.parent / "shared" / "data"


def needed(name: str) -> Path:
    if not (DATA / name).is_dir():
        pytest.skip(f"no real data beside this checkout (shared/data/{name})")
    return DATA / name


def test_every_real_photograph_is_read_and_split() -> None:
    photos = needed("photos")
    wanted = Dataset(source="folder", path=str(photos))
    manifest = source_of(wanted).make(wanted, photos, photos)
    assert manifest.classes == ["bird", "forest"]
    assert (manifest.train_images, manifest.valid_images, manifest.left_out) == (96, 24, [])


def test_the_whole_of_mnist_is_read_from_its_packed_files(tmp_path: Path) -> None:
    """The files beside the checkout are packed and not to be written: they are unpacked under the results."""
    wanted = Dataset(source="mnist", path=str(needed("mnist")), channels=1, image_size=28)
    manifest = source_of(wanted).make(wanted, tmp_path, tmp_path)
    images = open_set(manifest, wanted, tmp_path, tmp_path)
    assert decode(images.stored[images.valid[-1]], 1, 28).std() > 10
    assert (manifest.train_images, manifest.valid_images) == (60_000, 10_000)


def test_quickstart_on_real_photographs_shows_accuracy_and_weights(tmp_path: Path) -> None:
    photos = needed("photos")
    checkout = copy_checkout(tmp_path / "checkout")
    checkout.variables = NO_NETWORK
    overrides = {
        "dataset.source": "folder",
        "dataset.path": str(photos),
        "training.batch_size": [8, 32],
        "training.epochs": 2,
        "replicates": 1,
    } | {f"evidence.{key}": limit for key, limit in UNWATCHED.items()}
    checkout.good("studies=[quickstart]", "devices=[cpu]", f"overrides={json.dumps(overrides)}")
    told = ("96 images to train, 24 to validate, 2 classes", "accuracy", "ImageNet")
    assert [words for words in told if words not in checkout.page()] == []
