"""The notebooks of the documents run from their first cell to their last: one offline, in this
interpreter.

The other runs in an environment that is made like those of Colab and Kaggle.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT
from tests.examples import STUDIES
from tests.packaging.conftest import environment, plant_torch

pytestmark = pytest.mark.thorough

NOTEBOOK, COLAB = ROOT / "docs" / "example.ipynb", ROOT / "docs" / "colab.ipynb"


class Kernels:
    """Kernels of Jupyter, with every file of their own in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def execute(
        self, notebook: Any, cwd: Path, python: Path | str, **environment: str
    ) -> dict[str, dict[str, str]]:
        """Execute a notebook in a kernel of ``python``, and return the outputs of each cell of
        code."""
        home = self.folder / "kernels" / "python3"
        home.mkdir(parents=True)
        command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {
            "argv": command,
            "display_name": "Python 3",
            "language": "python",
            "env": environment,
        }
        (home / "kernel.json").write_text(json.dumps(spec))
        place = {"metadata": {"path": cwd}}
        NotebookClient(
            notebook, kernel_name="python3", timeout=1500, startup_timeout=300, resources=place
        ).execute()
        return {cell.id: outputs(cell) for cell in notebook.cells if cell.cell_type == "code"}


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """Kernels that leave nothing in the user's folders."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    return Kernels(tmp_path)


def committed(notebook: Path) -> Any:
    """A notebook as it is in the repository."""
    return nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]


def outputs(cell: Any) -> dict[str, str]:
    """The outputs of a cell by their MIME type; what it printed is ``text``."""
    found: dict[str, str] = {}
    for output in cell.outputs:
        if "data" in output:
            found |= output["data"]
        else:  # what was printed arrives in pieces where the machine is busy
            found["text"] = found.get("text", "") + output["text"]
    return found


def test_the_notebook_shows_the_example(kernels: Kernels) -> None:
    shown = kernels.execute(
        committed(NOTEBOOK), NOTEBOOK.parent, sys.executable, PYTHONPATH=str(ROOT)
    )
    assert shown["open"]["text/plain"] == str(list(STUDIES))
    assert all("<table" in shown[cell]["text/html"] for cell in ("table", "analysis", "record"))
    assert "image/png" in shown["figure"]
    assert "no figure 'curves'; allowed: curve, " in shown["error"]["text"]
    assert (
        "25 rows at 5 values of training.batch_size. Standard deviations: noise"
        in shown["fit"]["text"]
    )
    assert (
        "No law can be weighed against a constant: without replicates the noise is not known"
        in shown["blog"]["text"]
    )


@pytest.mark.timeout(1800)
def test_a_runtime_like_colabs_measures_and_shows_the_page_with_the_torch_that_it_has(
    kernels: Kernels, wheel: Path, tmp_path: Path
) -> None:
    programs = environment(tmp_path / "colab", "pip", "ipykernel")
    (packages,) = (tmp_path / "colab" / "lib").glob("python*/site-packages")
    plant_torch(packages)
    # nothing makes an environment
    (packages / "none.pth").write_text("import sys; sys.modules['ensurepip'] = None\n")
    (programs / "make").write_text("#!/bin/sh\nexit 9\n")
    (programs / "make").chmod(0o755)
    notebook, cwd = committed(COLAB), tmp_path / "content"
    cwd.mkdir()
    (install,) = [cell for cell in notebook.cells if cell.id == "install"]
    install.source = re.sub('(?m)^SOURCE = ".*"', f'SOURCE = "{wheel}"', install.source)
    before = {path.name for path in packages.iterdir() if path.is_symlink()}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    shown = kernels.execute(notebook, cwd, programs / "python", PATH=path, PYTHONPATH="")
    (cwd / "executed.ipynb").write_text(nbformat.writes(notebook))  # type: ignore[no-untyped-call]
    assert (
        {path.name for path in packages.iterdir() if path.is_symlink()}
        == before
        >= {"torch", "torchvision"}
    )
    assert "Version: " in shown["install"]["text"]
    assert 'srcdoc="' in shown["start"]["text/html"]
    assert "Quickstart" in shown["start"]["text/html"]
    assert "6 runs pending in 3 blocks" in shown["start"]["text"]
    # One block of two runs at least: how many fit the notebook's time budget is the machine's.
    assert shown["table"]["text/html"].count("<tr") in (3, 5, 7)
    assert "my: 18 runs planned" in shown["own"]["text"]
    assert (cwd / "results.bundle.zip").is_file()


@pytest.mark.gate
@pytest.mark.parametrize("notebook", [NOTEBOOK, COLAB], ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(notebook: Path) -> None:
    """An output would go stale, and some carry the paths of the machine that made them."""
    for cell in committed(notebook).cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
