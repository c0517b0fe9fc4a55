"""The committed examples as results folders. A test that changes one works on a copy."""

from pathlib import Path

from tests.conftest import ROOT


def results_of(example: str) -> Path:
    """Return the results folder of an example, such as ``example-h200``."""
    return ROOT / "docs" / example
