"""What a start says at its end, and the commands that it prints."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from study.artifacts.layout import Results
from study.artifacts.plan import StartCommand, options_of, write_plans
from study.cli import main
from tests.conftest import tiny_plan
from tests.examples import STUDIES, with_analysis
from tests.unit.artifacts.test_records import write_records
from tests.unit.test_documents import MEANT_BY_A_SHELL


@pytest.mark.parametrize(
    ("given", "changes", "told"),
    [
        ({}, {}, ["studies=[x]"]),
        ({"devices": ["cpu"]}, {"overrides": {"a": 8}}, ["studies=[x]", "devices=[cpu]", "overrides={a: 8}"]),
        (
            {"overrides": {"model.name": "my nets:small", "replicates": 2}},
            {"overrides": {"replicates": 8, "training.batch_size": [16, 32]}},
            ["studies=[x]", 'overrides={model.name: "my nets:small", replicates: 8, training.batch_size: [16, 32]}'],
        ),
        ({"size": "reduced", "container": "none"}, {}, ["studies=[x]", "size=reduced", "container=none"]),
    ],
)  # fmt: skip
def test_a_printed_command_repeats_the_words_of_the_start_and_changes_one_key(
    given: dict[str, Any], changes: dict[str, Any], told: list[str]
) -> None:
    command = StartCommand(config=given).again("x", **changes)
    assert not MEANT_BY_A_SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", command))
    words = shlex.split(command)
    assert words[words.index("--config") + 1 :] == told


def test_the_answer_of_the_example_is_printed_with_a_link_that_opens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "my results"
    for study in STUDIES[:2]:
        (results / study).mkdir(parents=True)
        for name in ("plan.json", "fit.json"):
            shutil.copy(with_analysis(study) / study / name, results / study)
    (results / "report.html").write_text("")
    (results / "plan.json").write_text(json.dumps({"studies": STUDIES[:2]}))
    assert main(["answer", "--results", str(results)]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line[:8].strip() for line in lines if not line.endswith(":")]
    assert [name for name in names if name in ("answer", "report")] == [
        "answer",
        "answer",
        "report",
    ]
    assert lines[0] == "photographs:"
    assert lines[-1] == f"report  file://{tmp_path}/my%20results/report.html"
    assert main(["answer", "photographs-speedup", "--results", str(results)]) == 0
    assert capsys.readouterr().out.startswith("answer  ")


MINE = "/home/qbob too/x"
STARTS = [
    (StartCommand(), True),
    (StartCommand(files={"tiny": "tiny.yaml"}), True),
    (StartCommand(files={"tiny": "gone.yaml"}), False),
    (StartCommand(program="study", files={"tiny": f"{MINE}/tiny.yaml"}), False),
    (StartCommand(options=[f"--directory={MINE}/run", "--profile=~/qbob/slurm"]), False),
    (StartCommand(config={"images": {"cpu": f"{MINE}/a.tar"}, "overrides": {"seed": 7}}), False),
]


@pytest.mark.parametrize(("start", "printed"), STARTS)
def test_a_page_holds_no_folder_of_its_start_and_a_terminal_no_command_of_elsewhere(
    start: StartCommand,
    printed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").touch()
    plan, files = (
        tiny_plan(replicates=2).model_copy(update={"start": start}),
        Results(Path("results")),
    )
    write_plans([plan], files.root)
    write_records(plan, files.records("tiny"))
    files.record("tiny", plan.runs[0].file).unlink()
    for verb in (
        ["analyse"],
        ["report", "--from-tables"],
        ["answer", "--results", f"{tmp_path}/results"],
    ):
        assert main([*verb, "tiny"]) == 0
    assert "qbob" not in files.fit("tiny").read_text() + files.report.read_text()
    here, elsewhere = (
        line for line in capsys.readouterr().out.splitlines() if line.startswith("next")
    )
    assert here.startswith("next    1 run still to be made")
    assert (f": {start.again('tiny')}" in here) is printed
    assert start.again("tiny") not in elsewhere
    assert "where it was measured" in elsewhere or "folders that are left out" in elsewhere


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--cores", "1", "-n"], []),
        (["--cores=4", "--config", "a=b"], ["--cores=4"]),
        (["-c", "4", "-d", "my folder", "--quiet"], ["--cores=4", "--directory=my folder"]),
        (["-c4", "-dmy folder", "-n"], ["--cores=4", "--directory=my folder"]),
        (
            ["--profile", "profiles/slurm", "--jobs=8", "results/report.html"],
            ["--profile=profiles/slurm", "--jobs=8"],
        ),
        (["-s", "other/Snakefile", "--cores"], ["--snakefile=other/Snakefile"]),
    ],
)
def test_a_printed_command_repeats_the_options_of_the_start(
    typed: list[str], told: list[str]
) -> None:
    command = StartCommand(options=options_of(typed))
    words = shlex.split(command.again("x"))
    assert [word for word in words[1:] if word in told] == told
    assert words[-2:] == ["--config", "studies=[x]"]
    assert ("--cores 1 " in command.again("x")) is not ("=4" in str(told) or "jobs" in str(told))
    folder = ["--results", "my folder/results"] if "--directory=my folder" in told else []
    assert shlex.split(command.retry("x")) == ["python", "-m", "study", "retry", "x", *folder]
