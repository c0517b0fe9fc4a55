"""A command as a run: what it finds, what is read from it, and every end that it can have."""

import json
import os
import re
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from study.analysis.table.rows import printed_seconds
from study.artifacts.block import Block
from study.artifacts.layout import Results
from study.artifacts.machine import Observed
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.record_store import Session
from study.config.command import Output
from study.config.load import read_study
from study.config.selection import Selection
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan
from study.host.steps import block as step
from study.host.steps import command, watch
from study.verbs.declare import say


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STUDY_INSTRUMENTS", "off")


def plan_of(line: str, script: str = "", **values: Any) -> Plan:
    """The plan of a study with this command, in the working folder, where ``script`` is a.py."""
    Path("a.py").write_text(script)
    own = {"line": line} | values.pop("command", {})
    evidence = {"evidence": {"others_cpu_percent": None, "steal_percent": None}}
    study = {"title": "t", "question": "q?", "replicates": 1, "command": own}
    Path("one.yaml").write_text(yaml.safe_dump(study | evidence | values))
    read = read_study("one.yaml", [], Selection())
    return make_plan("one", read, EngineChoice("none", "asked for"), {"cpu": None})


def ran(plan: Plan, number: int = 0) -> Record:
    """The record of a run of a plan, which is executed."""
    run = plan.runs[number]
    block = Block(plan.name, run.block, "1-00000000", [run])
    context = step.BlockContext(plan, block, Results(Path("results")), Session(), say)
    return step.measure(context, run, "run", step.Patience(0))


PRINTS = """
import time
print("loading", flush=True); time.sleep(0.2); print("data ready", flush=True)
for epoch in range(3):
    print(f"epoch {epoch}: {100 - epoch} ms, accuracy {95 + epoch}.0%", flush=True)
print('{"key": "final_loss", "value": 0.25}')
"""


def test_a_command_is_timed_by_our_clock_and_by_what_it_prints() -> None:
    output = {"seconds": "epoch [0-9]+: ([0-9.]+) ms", "unit": "ms", "starts": "^data ready"}
    output |= {"accuracy": "accuracy ([0-9.]+)%", "loss": "final_loss"}
    record = ran(plan_of("python a.py", PRINTS, output=output))
    assert (record.outcome, record.message) == ("ok", None)
    told = record.command
    printed = {"seconds": [100, 99, 98], "accuracy": [95, 96, 97], "loss": [0.25]}
    assert told and told.printed == printed
    assert told.marked_seconds is not None
    assert told.seconds - told.marked_seconds > 0.2, "start-up is before the line"
    assert (told.line, told.files) == ("python a.py", 1)


@pytest.mark.parametrize(
    ("numbers", "asked", "seconds"),
    [
        ([9, 1, 2, 3], {"take": "median", "skip": 1}, 2),
        ([9, 1, 2, 3], {"take": "mean", "skip": 1, "unit": "ms"}, 0.002),
        ([1, 2], {"take": "sum", "unit": "min"}, 180),
        ([500, 250], {"unit": "per s", "take": "mean"}, 3),
        ([*range(1, 201)], {"take": "p99"}, 198),
        ([0], {"unit": "per s"}, None),
        ([0.0], {}, None),
        ([], {}, None),
    ],
)
def test_printed_numbers_become_one_time(
    numbers: list[float], asked: dict[str, Any], seconds: float | None
) -> None:
    """A rate is the time of 1000, and rates become times before they are averaged."""
    assert printed_seconds(numbers, Output(seconds="(x)", **asked)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("script", "asked", "outcome", "words"),
    [
        ("import sys; sys.exit('no room for 3 tigers')", {}, "failed", "exit code 1.*3 tigers"),
        ("import os; os.kill(os.getpid(), 11)", {}, "failed", "SIGSEGV"),
        ("raise MemoryError", {}, "out_of_memory", "MemoryError"),
        (
            "open('other.txt')",
            {},
            "failed",
            "other.txt lies in your folder: name it in command.files",
        ),
        ("raise OSError('no ' + repr('x' * 280))", {}, "failed", "exit code 1"),
        ("print('x')", {"output": {"loss": "loss (.*)"}}, "failed", "no line.*output.loss"),
        ("print('x')", {"output": {"starts": "^go"}}, "failed", "no line.*output.starts"),
        ("print('t 0')", {"output": {"seconds": "t (.*)"}}, "failed", "no number above 0"),
        ("print('a 250')", {"output": {"accuracy": "a (.*)"}}, "failed", "finds 250"),
        ("print('t 1')", {"output": {"seconds": "t (.*)", "skip": 1}}, "failed", "after the first"),
        ("while True: pass", {"limits": {"timeout_seconds": 1}}, "failed", "timed out after 1 s"),
        ("while True: print('y' * 9999)", {}, "failed", "more than 64 MiB"),
    ],
)
def test_every_end_of_a_command_is_a_record(
    script: str, asked: dict[str, Any], outcome: str, words: str
) -> None:
    Path("other.txt").write_text("it is here, and nothing names it")
    record = ran(plan_of("python a.py", script, **asked))
    assert record.outcome == outcome
    assert record.message is not None

    assert re.search(words, record.message), record.message
    assert os.sep + "tmp" not in record.message
    assert Path("results/logs").stat()


def test_each_run_has_a_fresh_copy_and_leaves_nothing() -> None:
    script = "import pathlib; p = pathlib.Path('ckpt'); print('was', p.exists()); p.write_text('x')"
    plan = plan_of("python a.py {seed}", script, output={"loss": "was (False)"}, replicates=2)
    before = {path.name for path in Path().iterdir()}
    for number in range(2):
        message = ran(plan, number).message
        log = next(Path("results/logs").rglob(f"{plan.runs[number].name}*")).read_text()
        assert "was False" in log, message
    assert {path.name for path in Path().iterdir()} - before == {"results"}


def test_a_command_sees_the_callers_environment_and_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.setenv("CALLERS", "own")
    script = "import os, helper; print(sorted(os.environ.items()), os.getcwd())"
    Path("helper.py").write_text("")
    plan = plan_of("python a.py", script, command={"variables": {"RUNS_ON": "{device}"}})
    assert ran(plan).outcome == "ok"
    log = next(Path("results/logs").rglob("run-r1*")).read_text()
    assert "('CALLERS', 'own')" in log and "('RUNS_ON', 'cpu')" in log
    assert "('CUDA_VISIBLE_DEVICES', '')" in log, "a run on a CPU sees no GPU"
    assert "STUDY_" not in log
    for name in ("TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        assert f"('{name}', '{Path('results').resolve()}" in log, name


class Workload:
    """A reference workload, as a fork server executes it: its CPU time is none of our children's."""

    elsewhere_seconds = 0.7

    def __init__(self, *_: object) -> None:
        told = {"first_use": [0.1], "device": [0.01] * 5, "host": []}
        self.lines, self.wait, self.end = iter([json.dumps(told)]), lambda: 0, lambda: None


def test_a_reference_workload_stands_around_a_command_and_is_no_disturbance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours: list[float | None] = []

    def between(*seen: Any) -> Observed:
        ours.extend(seen[2:])
        return Observed()

    monkeypatch.delenv("STUDY_INSTRUMENTS")
    monkeypatch.setattr(command, "begin", Workload)
    monkeypatch.setattr(watch, "between", between)
    workload = ran(plan_of("python a.py")).reference_workload
    assert workload and (len(workload.before), len(workload.after), ours) == (5, 5, [1.4])


def test_what_a_command_leaves_behind_is_ended_with_it() -> None:
    script = (
        "import subprocess; c = subprocess.Popen(['sleep', '3600'], start_new_session=True);"
        "print('pid', c.pid)"
    )
    record = ran(plan_of("python a.py", script, output={"loss": "pid ([0-9]+)"}))
    assert record.command
    assert not psutil.pid_exists(int(record.command.printed["loss"][0]))


def test_the_key_holds_what_the_command_reads_and_nothing_else() -> None:
    Path("pack").mkdir()
    texts = {"pack/__init__.py": "from . import deep", "pack/deep.py": "", "conf.json": "{}"}
    texts |= {"extra/b.txt": "", "weights.bin": "w", "README.md": ""}
    Path("extra").mkdir()
    for name, text in texts.items():
        Path(name).write_text(text)

    def key(**values: Any) -> str:
        own = {"files": ["extra"], "data": ["weights.bin"]} | values.pop("command", {})
        line = values.pop("line", "python a.py --config=conf.json")
        return plan_of(line, "import pack", command=own, **values).runs[0].key

    first = key()
    Path("README.md").write_text("other")
    assert key() == first
    assert key(output={"unit": "ms", "take": "mean", "skip": 3, "what": "a step"}) == first
    changed = [
        key(output={"loss": "x ([0-9]+)"}),
        key(command={"variables": {"A": "1"}}),
        key(line="python a.py  --config=conf.json -v"),
    ]
    for name in ("pack/deep.py", "conf.json", "extra/b.txt", "weights.bin"):
        Path(name).write_text("x = 1")
        changed.append(key())
    assert len({first, *changed}) == 1 + len(changed)


def test_a_record_of_a_command_holds_no_path_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("x")
    plan = plan_of(f"cat {tmp_path}/in.txt --", command={"data": [f"{tmp_path}/in.txt"]})
    assert str(tmp_path) not in (record := ran(plan)).model_dump_json()
    assert record.outcome == "ok", record.message
