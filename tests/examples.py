"""The committed examples as results folders. A test that changes one works on a copy."""

import functools
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from study.base.files import ROOT


def results_of(example: str) -> Path:
    """Return the results folder of an example, such as ``example-switches``: its bundle, unpacked once a process."""
    return Path(_unpacked(example).name)


@functools.cache
def _unpacked(example: str) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory(prefix=f"{example}-")
    with ZipFile(ROOT / "docs" / example / "results.zip") as bundle:
        bundle.extractall(folder.name)
    return folder
