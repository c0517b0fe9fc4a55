"""The examples of the document on commands, each typed as it stands there."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.unit.test_documents import blocks
from tests.workflow.conftest import ALONE, Checkout

PAGE = ROOT / "docs" / "any-command.md"
SCRIPT, OWN = blocks(PAGE, "python")
STUDIES = blocks(PAGE, "yaml")
QUICK = ["--", "--config", "container=none", *ALONE]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A user's folder with the files that the document names."""
    own = Checkout(tmp_path_factory.mktemp("a folder of mine"))
    (own.root / "train.py").write_text(SCRIPT)
    (own.root / "own.py").write_text(OWN)
    (own.root / "numbers.txt").write_text("\n".join(map(str, range(100_000))))
    return own


def started(folder: Checkout, *arguments: str, code: int = 0) -> str:
    """What a start says, which must end with this exit code."""
    folder.variables["PYTHONPATH"] = str(ROOT)
    done = folder.run([sys.executable, "-m", "study", "start", *arguments, *QUICK])
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("number", "answer", "on_the_page"),
    [
        (0, "batch sizes 32 and 256|batch size (32|256)", ["python train.py", "loss"]),
        (1, "claim .*Twice the numbers", ["an epoch", "The times are those that the command"]),
        (2, "gzip -1", ["neither an accuracy nor a loss", "Compressors"]),
    ],
)
def test_each_example_gives_an_answer_and_a_page(
    number: int, answer: str, on_the_page: list[str], folder: Checkout
) -> None:
    (folder.root / "example.yaml").write_text(STUDIES[number])
    said = started(folder, "example.yaml")
    assert re.search(answer, said, re.IGNORECASE), said
    page = (folder.root / "results" / "report.html").read_text(encoding="utf-8")
    for words in on_the_page:
        assert words in page
    for words in ("images", "epochs.csv", "weights", "ResNet"):
        assert words not in page.partition("Method and the verdict")[0].partition("</style>")[2]


def test_a_command_that_is_typed_is_measured_and_leaves_its_study(folder: Checkout) -> None:
    line = "gzip -{level} --keep --stdout numbers.txt"
    said = started(folder, line, "--factor", "level=1,9")
    name = said.partition("the study of this command: ")[2].split()[0]
    written = yaml.safe_load((folder.root / name).read_text(encoding="utf-8"))
    assert (written["command"], written["factors"]) == (line, {"level": [1, 9]})
    again = started(folder, line, "--factor", "level=1,9")
    assert "0 runs pending" in again or "nothing" in again.lower() or "kept" in again, again


def test_a_command_of_which_no_run_succeeds_is_an_error_once_its_page_is_made(
    folder: Checkout,
) -> None:
    said = started(folder, "gzip {name}.txt", "--factor", "name=a,b", code=1)
    assert said.rstrip().endswith("no run has succeeded")
    assert "No such file" in (folder.root / "results" / "report.html").read_text(encoding="utf-8")


def test_planning_a_command_starts_nothing(folder: Checkout, tmp_path: Path) -> None:
    marker = tmp_path / "started"
    (folder.root / "touch.yaml").write_text(
        yaml.safe_dump({"title": "t", "question": "q?", "command": f"touch {marker}"})
    )
    done = folder.run([sys.executable, "-m", "study", "plan", "touch.yaml"])
    assert done.returncode == 0, done.stderr
    assert "touch" in done.stdout
    assert not marker.exists()
