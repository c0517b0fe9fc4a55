import re
import subprocess
import sys

import pytest

from study.cli import main
from study.schema import generated_files
from tests.conftest import ROOT


def test_the_command_line_imports_neither_torch_nor_pandas() -> None:
    code = "import study.cli, sys; print({'torch', 'pandas', 'fastai', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "set()"


def test_plan_prints_the_table_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "quickstart", "--device", "cpu", "--set", "training.batch_size=[16, 32]"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["position", "block", "name", "device", "training.batch_size", "key"]
    assert len(lines) == 1 + 2 * 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "nope"], "studies: unknown study 'nope'"),
        (["plan", "quickstart", "--set", "training.batch_size"], "--set: 'training.batch_size' is not allowed"),
        (["retry", "nope"], "retry: no records of a study 'nope'"),
    ],
)
def test_an_error_is_one_line_and_the_exit_code_says_so(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("error: ")
    assert words in error


@pytest.mark.parametrize("path", sorted(generated_files()))
def test_generated_files_are_those_of_the_models(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == generated_files()[path], "run: make schema"


def test_the_locks_name_no_host_and_pin_every_line_with_a_hash() -> None:
    for name in ("requirements.lock", "requirements-host.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "://" not in text
        assert "index" not in text.split("annotated")[0]
        pins = [block for block in text.split("\n") if block and not block.startswith((" ", "#"))]
        assert all("==" in pin and pin.endswith("\\") for pin in pins)
    host = (ROOT / "requirements-host.lock").read_text(encoding="utf-8")
    assert "\ntorch==" not in host
    full = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    full_pins = {re.sub(r"\[.*?\]", "", line).split(" ")[0] for line in full.splitlines()}
    assert {re.sub(r"\[.*?\]", "", line).split(" ")[0] for line in host.splitlines() if "==" in line} <= full_pins
