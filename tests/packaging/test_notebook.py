"""The notebook of the documents runs from its first cell to its last, offline, in this interpreter."""

import json
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import ROOT

pytestmark = pytest.mark.thorough

NOTEBOOK = ROOT / "docs" / "example.ipynb"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a kernel of this interpreter, with the package on its path and every file of its own in a folder."""
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Python 3", "language": "python", "env": {"PYTHONPATH": str(ROOT)}}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    return folder.name


def committed() -> Any:
    """The notebook as it is in the repository."""
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def outputs(cell: Any) -> dict[str, str]:
    """The outputs of a cell by their MIME type; what it printed is ``text``."""
    found: dict[str, str] = {}
    for output in cell.outputs:
        if "data" in output:
            found |= output["data"]
        else:  # what was printed arrives in pieces where the machine is busy
            found["text"] = found.get("text", "") + output["text"]
    return found


def test_the_notebook_shows_the_example(kernel: str) -> None:
    notebook = committed()
    place = {"metadata": {"path": NOTEBOOK.parent}}
    NotebookClient(notebook, kernel_name=kernel, timeout=500, startup_timeout=300, resources=place).execute()
    shown = {cell.id: outputs(cell) for cell in notebook.cells if cell.cell_type == "code"}
    assert shown["open"]["text/plain"] == "['batch-size', 'speedup']"
    assert all("<table" in shown[cell]["text/html"] for cell in ("table", "analysis", "record"))
    assert "image/png" in shown["figure"]
    assert "no figure 'telemetry_gpu'; allowed: batch_size_performance, telemetry_cuda" in shown["error"]["text"]
    assert "50 rows" not in shown["fit"]["text"]
    assert "25 rows at 5 values of training.batch_size. Standard deviations: noise" in shown["fit"]["text"]
    assert "The points are too few to compare any law with a constant" in shown["blog"]["text"]


@pytest.mark.gate
def test_the_notebook_is_committed_without_outputs() -> None:
    """An output would go stale, and some carry the paths of the machine that made them."""
    for cell in committed().cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
