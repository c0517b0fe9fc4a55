"""A user's own model is tried in a process of its own before any run: whatever it does there is one
error line."""

import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from study.artifacts.plan import write_plans
from study.artifacts.prepared import Weights
from study.cli import main
from study.host.steps import prepare
from tests.conftest import ROOT, tiny_plan

NET = """
import os, sys, time, torch
def net(classes):
    {body}
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, classes))
"""
MOVED = "model.name: 'nets:net' changes what a run is asked for: the working folder is another one"

Try = Callable[[str], tuple[int, str]]


@pytest.fixture
def tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Try:
    """Try a model whose factory executes a line: the exit code of the step, and what it said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")

    def attempt(body: str) -> tuple[int, str]:
        Path("nets.py").write_text(NET.format(body=body), encoding="utf-8")
        plan = tiny_plan(
            model={"name": "nets:net", "weights": "none"},
            training={"freeze_epochs": 0, "epochs": 1},
        )
        write_plans([plan], Path("results"))
        capfd.readouterr()
        return main(
            ["weights", "results/tiny/plan.json", plan.runs[0].weights]
        ), capfd.readouterr().err

    return attempt


def test_a_good_model_that_reads_files_of_its_own_and_writes_others_is_decided_about(
    tried: Try,
) -> None:
    for own in ("sizes.json", "blocks.py"):
        Path(own).touch()
    body = "import blocks; open('sizes.json').close(); open('lo' + 'g', 'a').close()"
    assert tried(body) == (0, "weights of nets:net: random (random weights were asked for)\n")
    (decided,) = map(Weights.read, Path("results/tiny/weights").glob("*.json"))
    assert decided.kind == "random"
    assert decided.parameters == {"1.weight": [2, 3 * 32 * 32], "1.bias": [2]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os._exit(0)", "model.name: 'nets:net' ended the process that tried it; see"),
        (
            "sys.exit('enough')",
            "model.name: 'nets:net' cannot be loaded (SystemExit: enough) (nets.py, line 4)",
        ),
        ("os.kill(os.getpid(), 9)", "the process was ended by SIGKILL"),
        ("os.chdir('/')", MOVED),
        ("os.chdir('/'); 1 / 0", "model.name: 'nets:net' cannot be loaded (ZeroDivisionError"),
        ("torch.nn.Flatten.forward = lambda _, x: os.chdir('/') or x.flatten(1)", MOVED),
        ("time.sleep(1000)", "timed out after 5 s"),
    ],
)
def test_a_model_that_ends_or_hangs_while_it_is_tried_is_one_error_line(
    body: str, words: str, tried: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in body:
        monkeypatch.setattr(prepare, "TRY_SECONDS", 5.0)
    code, said = tried(body)
    assert code == 1
    assert said.startswith(f"error: {words}")
    assert said.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_model_that_takes_too_much_memory_while_it_is_tried_is_one_error_line(
    tried: Try, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "OWN_SHARE", 4 * 2**30 / psutil.virtual_memory().total)
    assert tried("ours = bytes(2**30)")[0] == 0
    code, said = tried("hog = [bytes(2**30) for _ in range(8)]")
    assert code == 1
    assert said.startswith("error: model.name: 'nets:net' cannot be loaded (MemoryError: )")
    assert said.count("\n") == 1
