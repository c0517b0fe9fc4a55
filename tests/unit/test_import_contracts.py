"""The laws of the layout hold, and each contract fails where one planted import breaks it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.thorough

LAYERS = "Imports follow the data"
PURE = "The analysis is a pure function of the records"
VALUES = "The statistics return values and findings"
TORCH = "Nothing but the training side imports torch"
CORE = "The core imports no extra"
APART = "No extra imports another"
CIRCLE = "No package imports in a circle"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages and their contracts."""
    root = tmp_path_factory.mktemp("contracts")
    for name in ("study", "study_extras"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", root)
    return root


def broken(root: Path) -> set[str]:
    """Check the contracts of the package in ``root``; return the names of those that are broken."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache", "--no-logo"], cwd=root, capture_output=True, text=True)
    names, told = (LAYERS, PURE, VALUES, TORCH, CORE, APART, CIRCLE), " ".join(done.stdout.split())
    found = {name for name in names if re.search(f"{name}((?!KEPT).)*BROKEN", told)}
    assert bool(found) == bool(done.returncode), done.stdout + done.stderr
    return found


def test_the_contracts_hold(package: Path) -> None:
    assert broken(package) == set()


@pytest.mark.parametrize(
    ("module", "planted", "contract"),
    [
        ("study/host/supervise.py", "from study.training import common", LAYERS),
        ("study/analysis/words.py", "from study.host import supervise", LAYERS),
        ("study/analysis/words.py", "from study.verbs import table", LAYERS),
        ("study/training/common.py", "from study.analysis import words", LAYERS),
        ("study/artifacts/run.py", "from study.data import decode", LAYERS),
        ("study/base/errors.py", "from study.config import sections", LAYERS),
        ("study/analysis/words.py", "from study.data import decode", PURE),
        ("study/analysis/stats/usable.py", "from study.analysis import words", VALUES),
        ("study/host/supervise.py", "import torch", TORCH),
        ("study/config/sections.py", "def late():\n    import torchvision", TORCH),
        ("study/analysis/stats/laws.py", "from study.analysis.stats import fits", CIRCLE),
        ("study/verbs/user.py", "def late():\n    from study_extras.compare import gate", CORE),
        ("study_extras/bundle/verbs.py", "from study_extras.compare import verbs", APART),
    ],
)
def test_one_planted_import_breaks_its_contract(package: Path, module: str, planted: str, contract: str) -> None:
    path = package / module
    sound = path.read_text(encoding="utf-8")
    path.write_text(f"{sound}\n\n{planted}\n", encoding="utf-8")
    try:
        assert contract in broken(package)
    finally:
        path.write_text(sound, encoding="utf-8")
