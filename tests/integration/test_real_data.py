"""On real photographs, where they lie beside the checkout. Never needed: skipped where they are absent."""

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT, UNWATCHED
from tests.workflow.conftest import NO_NETWORK, copy_checkout

pytestmark = pytest.mark.thorough

PHOTOS = ROOT.parent / "shared" / "data" / "photos"


@pytest.mark.skipif(not PHOTOS.is_dir(), reason="no real data beside this checkout (shared/data/photos)")
def test_quickstart_on_real_photographs_shows_accuracy_and_weights(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path / "checkout")
    checkout.variables = NO_NETWORK
    overrides = {
        "dataset.source": "folder",
        "dataset.path": str(PHOTOS),
        "training.batch_size": [8, 32],
        "training.epochs": 2,
        "replicates": 1,
    } | {f"evidence.{key}": limit for key, limit in UNWATCHED.items()}
    checkout.good("studies=[quickstart]", "devices=[cpu]", f"overrides={json.dumps(overrides)}")
    told = ("96 images to train, 24 to validate, 2 classes", "accuracy", "ImageNet")
    assert [words for words in told if words not in checkout.page()] == []
