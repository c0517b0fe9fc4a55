"""What a start says at its end."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from study.analysis.report.ending import answer_line, next_step
from study.analysis.stats.findings import Answer, CannotSay, Fastest, NothingSucceeded
from study.analysis.stats.usable import Estimate
from study.cli import main
from study.config.study import Study
from tests.conftest import study_values
from tests.examples import results_of
from tests.unit.analysis.planted import setting
from tests.unit.test_documents import MEANT_BY_A_SHELL

EXAMPLE = results_of("example-h200")
STUDY = Study.model_validate(study_values(replicates=3))
FEW = CannotSay(group=setting(device="cpu"), factor="training.batch_size", reasons={"4": "few_runs"}, more_runs=2)
UNTRAINED = CannotSay(
    group=setting(device="cpu"), factor="training.batch_size", reasons={"4": "not_learned"}, more_runs=None
)
FASTEST = Fastest(
    group=setting(device="cpu"), factor="training.batch_size", level=setting(size=8),
    time=Estimate(value=2.0, low=1.9, high=2.1), tied=[],
    equivalent=[], slower=["4"], left_out=[], unfair={}, missing=[], machine=None, machine_change=None, curve=None,
)  # fmt: skip


def test_a_line_is_the_first_statement_and_says_first_where_there_is_no_answer() -> None:
    assert answer_line("tiny", [FASTEST, FEW]).startswith("tiny: On the CPU the fastest is batch size 8, 2")
    assert answer_line("tiny", [FEW]).startswith("tiny: No answer yet. On the CPU it cannot be said")
    unclear = FASTEST.model_copy(update={"machine": "unclear", "machine_change": 3.0})
    assert answer_line("tiny", [unclear]).startswith("tiny: No answer yet. ")
    assert answer_line("tiny", [NothingSucceeded(group=None)]).startswith("tiny: No answer yet. ")


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("x", FEW, ["'studies=[x]'", "'overrides={replicates: 5}'"]),
        ("x", UNTRAINED, ["'studies=[x]'", "'overrides={training.epochs: 3}'"]),
        ("x", NothingSucceeded(group=None), ["python -m study retry x"]),
        ("quickstart", FASTEST, ["make published", "'studies=[batch-size]'"]),
        ("x", FASTEST, ["python -m study claims"]),
    ],
)
def test_the_next_step_is_a_command_that_both_shells_take(name: str, answer: Answer, words: list[str]) -> None:
    step = next_step({name: STUDY}, {name: [answer]}, 0)
    assert step.startswith("Next")
    assert all(word in step for word in words)
    if "make study" in step:
        command = step[step.index("make study") :]
        assert not MEANT_BY_A_SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", command))
        arguments = shlex.split(shlex.split(command)[2].removeprefix("ARGS="))
        assert arguments[0] == "--config"
        assert [word.partition("=")[0] for word in arguments[1:]] == ["studies", "overrides"][: len(arguments) - 1]


@pytest.mark.parametrize("answer", [FEW, UNTRAINED, FASTEST])
def test_where_there_is_no_makefile_the_next_step_asks_for_none(answer: Answer) -> None:
    step = next_step({"quickstart": STUDY}, {"quickstart": [answer]}, 0, makefile=False)
    assert not re.search(r"\bmake ", step)
    assert "snakemake --cores 1 --config 'studies=[quickstart]' 'overrides={" in step or answer is FASTEST


def test_runs_that_are_left_come_before_any_other_step() -> None:
    step = next_step({"x": STUDY}, {"x": [FEW]}, 4)
    assert step == "Next: 4 runs still to be made: start again, with no time budget or a longer one."


def test_the_answer_of_the_example_is_printed_with_a_link_that_opens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "my results"
    for study in ("batch-size", "speedup"):
        (results / study).mkdir(parents=True)
        for name in ("plan.json", "fit.json"):
            shutil.copy(EXAMPLE / study / name, results / study)
        shutil.copytree(EXAMPLE / study / "records", results / study / "records")
    (results / "report.html").write_text("")
    (results / "plan.json").write_text(json.dumps({"studies": ["batch-size", "speedup"]}))
    assert main(["answer", "--results", str(results)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["batch-size", "speedup", "The report"]
    assert lines[2] == f"The report: file://{tmp_path}/my%20results/report.html"
    assert lines[3].startswith("Next")
    assert main(["answer", "speedup", "--results", str(results)]) == 0
    assert capsys.readouterr().out.startswith("speedup: ")
