import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from study.artifacts.block import Block, blocks_of
from study.artifacts.layout import Results
from study.artifacts.machine import Observed
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import Record
from study.artifacts.record_store import Session, read_record
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.base.fork_server import FORK_SERVERS
from study.cli import main
from study.host.engine import container
from study.host.fork_servers import can_fork
from study.host.steps import attempt, watch
from study.host.steps import block as step
from study.verbs.declare import say
from tests.conftest import tiny_plan
from tests.unit.base.test_fork_server import ForkServer


def fake(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the training process be a line of Python; ``scratch`` is its folder."""
    prefix = "import sys, json, os, signal, pathlib; scratch = pathlib.Path(sys.argv[1]);"
    monkeypatch.setattr(
        attempt,
        "host_command",
        lambda job, scratch, _: [sys.executable, "-c", prefix + code, str(scratch)],
    )


def leaves(**result: str) -> str:
    """A line of Python that leaves such a result."""
    return f"(scratch / 'result.json').write_text({json.dumps(result)!r})"


def launched(folder: Path, plan: Plan | None = None, session: Session = Session()) -> Record:
    """The record of the first run of a plan, which is launched into the results in this folder."""
    plan = plan or tiny_plan()
    return measured(plan, plan.runs[0], folder, session)


def measured(plan: Plan, run: Run, folder: Path, session: Session = Session()) -> Record:
    """The record of a run that is launched into the results in this folder."""
    block = Block(plan.name, run.block, "1-00000000", [run])
    context = step.BlockContext(plan, block, Results(folder), session, say)
    return step.measure(context, run, "run", step.Patience(1e6))


KILL = "os.kill(os.getpid(), signal.SIGKILL)"
KILLED = "worker (pid 1) is killed by signal: x"


@pytest.mark.parametrize(
    ("code", "kernel", "outcome", "words"),
    [
        ("sys.exit(3)", False, "failed", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", False, "failed", "SIGSEGV"),
        (KILL, False, "failed", "SIGKILL"),
        (KILL, True, "out_of_memory", ""),
        (leaves(), False, "failed", "no valid result"),
        (leaves(outcome="out_of_memory", message="9 GiB"), False, "out_of_memory", "9 GiB"),
        (leaves(outcome="failed", message=KILLED), True, "out_of_memory", "worker"),
        (leaves(outcome="failed", message="ValueError: x"), True, "failed", "ValueError: x"),
    ],
)
def test_every_end_of_a_process_is_recorded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    kernel: bool,
    outcome: str,
    words: str,
) -> None:
    """A kill by the kernel, which it counts, is the end only of a run that was killed or says
    so."""
    fake(monkeypatch, code)
    counts = iter([7, 7 + kernel])
    monkeypatch.setattr(attempt, "oom_kills_of_the_group", lambda: next(counts))
    record, run = launched(tmp_path, session=Session(number=4)), tiny_plan().runs[0]
    assert (record.outcome, record.session) == (outcome, 4)
    assert (record.block, record.position) == (run.block, run.position)
    assert words in str(record.message)


HANGS = """
import json, os, pathlib, signal, subprocess, time

def main(job, scratch):
    if json.loads(pathlib.Path(job).read_text())["run"]["settings"]["limits"]["timeout_seconds"] == 5:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid}")
        time.sleep(3600)
    result = {"outcome": "unavailable", "message": "unharmed"}
    (pathlib.Path(scratch) / "result.json").write_text(json.dumps(result))
"""


@pytest.mark.skipif(not can_fork(), reason="this system has no fork servers")
@pytest.mark.parametrize("started", ["forked", "fresh"])
def test_a_run_that_hangs_is_ended_at_its_limit_and_recorded(
    started: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ignores SIGTERM, and it started a session of its own. The next one is forked from the same
    fork server."""
    (tmp_path / "hangs.py").write_text(HANGS)
    says = "import sys; sys.path.insert(0, ''); import hangs; hangs.main(*sys.argv[1:])"
    monkeypatch.setattr(attempt, "JOB_MODULE", "hangs")
    monkeypatch.setattr(
        attempt,
        "host_command",
        lambda job, scratch, _: [sys.executable, "-c", says, str(job), str(scratch)],
    )
    fork_server = ForkServer()
    monkeypatch.setenv(FORK_SERVERS, f"{os.getpid()} code cpu.torch={fork_server.address}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pids").touch()
    try:
        for seconds, outcome, words in (
            (5, "failed", "timed out after 5 s"),
            (300, "unavailable", "unharmed"),
        ):
            plan = tiny_plan(limits={"timeout_seconds": seconds}, process=started)
            (tmp_path / str(seconds)).mkdir()
            record = launched(tmp_path / str(seconds), plan)
            assert (record.outcome, record.started_as) == (outcome, started)
            assert words in str(record.message)
            pids = (tmp_path / "pids").read_text().split()
            assert not any(psutil.pid_exists(int(pid)) for pid in pids)
        assert fork_server.process.poll() is None
    finally:
        fork_server.end()


def test_a_run_that_was_made_elsewhere_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, "sys.exit(3)")
    plan, files = tiny_plan(), Results(tmp_path)
    record, samples = (path("tiny", plan.runs[0].file) for path in (files.record, files.telemetry))
    launched(tmp_path, plan)
    samples.parent.mkdir(parents=True, exist_ok=True)
    samples.write_bytes(b"precious")
    before = record.read_bytes()
    late = attempt.Attempt(read_record(record), {"seconds": np.ones(1)})
    with pytest.raises(StudyError, match="exists already and is kept"):
        late.keep(record, samples)
    assert (record.read_bytes(), samples.read_bytes()) == (before, b"precious")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_waits_until_the_record_and_its_samples_are_there(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, "pass")
    plan, seen = tiny_plan(), []
    path = Results(tmp_path).record("tiny", plan.runs[0].file)
    keep = attempt.Attempt.keep

    def late(tried: attempt.Attempt, record: Path, samples: Path) -> Record:
        os.kill(os.getpid(), number)
        return keep(tried, record, samples)

    monkeypatch.setattr(attempt.Attempt, "keep", late)
    usual = signal.signal(number, lambda number, _: seen.append((number, path.exists())))
    try:
        launched(tmp_path, plan)
    finally:
        signal.signal(number, usual)
    assert seen == [(number, True)]


def test_progress_is_plain_lines_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, "[print(f'progress {n} 3 epoch {n}') for n in (1, 2, 3)]; print('a warning')")
    launched(tmp_path)
    run = tiny_plan().runs[0]
    lines = Results(tmp_path).log("tiny", f"{run.name}.{run.key}").read_text().splitlines()
    assert lines == [*(f"epoch {n}: step {n} of 3" for n in (1, 2, 3)), "a warning"]


def test_every_file_of_a_run_lies_in_the_named_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, "print('hello')")
    monkeypatch.setattr(step, "start_fork_servers", lambda *_: None)
    plan = tiny_plan()
    run = plan.runs[0]
    results, elsewhere = Results(tmp_path / "named"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_plans([plan], results.root)
    monkeypatch.chdir(elsewhere)
    block = blocks_of(plan, results)[0]
    log = results.root / "block.log"
    options = ["--results", str(results.root), "--log", str(log)]
    assert main(["measure", "tiny", block.name, *options]) == 0
    said = [line.partition(": ")[0] for line in log.read_text().splitlines()]
    assert said == ["block 1 of 1, run 1 of 2", "block 1 of 1, run 2 of 2"]
    assert results.block("tiny", block.name).is_file()
    assert results.record("tiny", run.file).is_file()
    assert results.log("tiny", f"{run.name}.{run.key}").read_text() == "hello\n"
    assert list(elsewhere.iterdir()) == []


def test_cores_of_snakemake_do_not_reach_the_process_and_a_cpu_run_sees_no_gpu() -> None:
    inherited = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    inherited |= {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0"}
    cpu, cuda = (container.environment(device, inherited) for device in ("cpu", "cuda"))
    assert not any(name.endswith("_NUM_THREADS") for name in cpu)
    assert (cpu["CUDA_VISIBLE_DEVICES"], cpu["PATH"]) == ("", "/bin")
    assert cuda["CUDA_VISIBLE_DEVICES"] == "0"


def test_each_run_has_a_seed_of_its_own_that_does_not_change() -> None:
    assert attempt.run_seed(1, "bs4-cpu-r1") == 1_094_158_015
    assert len({attempt.run_seed(seed, f"bs4-cpu-r{r}") for seed in (1, 2) for r in (1, 2, 3)}) == 6


def planted_noise(monkeypatch: pytest.MonkeyPatch, *percent: float) -> None:
    """Let others use this share of the CPUs during each process, one after the other."""
    seen = iter(percent)
    quiet = watch.Before(Observed(others_cpu_percent=0.0), None, True, 0.0)
    monkeypatch.setattr(watch, "wait_until_quiet", lambda *arguments: quiet)
    monkeypatch.setattr(
        watch, "between", lambda *arguments: Observed(others_cpu_percent=next(seen))
    )


WATCHED = {"evidence": {"others_cpu_percent": 10}}


def test_a_disturbed_run_is_measured_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second record counts, and is marked where it was disturbed, too."""
    fake(monkeypatch, "pass")
    plan, files = tiny_plan(**WATCHED), Results(tmp_path)
    planted_noise(monkeypatch, 10.5, 9.5, 50.0, 60.0, 3.0)
    for run in (*plan.runs, plan.runs[0].model_copy(update={"name": "quiet"})):
        measured(plan, run, tmp_path)
    aside = [read_record(path) for path in sorted((files.records("tiny") / "disturbed").iterdir())]
    counts = {path.name: read_record(path) for path in files.records("tiny").glob("*.json")}
    assert sorted(record.run for record in aside) == sorted(run.name for run in plan.runs)
    assert all(record.disturbed == ["others_cpu_percent"] for record in aside)
    first, second = (counts[run.file] for run in plan.runs)
    assert (first.disturbed, second.disturbed) == ([], ["others_cpu_percent"])
    assert second.observed and second.observed.others_cpu_percent == 60.0
    assert len(counts) == 3


def test_a_run_disturbed_in_two_starts_loses_neither_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, "pass")
    plan = tiny_plan(**WATCHED)
    path = Results(tmp_path).record("tiny", plan.runs[0].file)
    planted_noise(monkeypatch, 50.0, 1.0, 50.0, 1.0)
    for session in (1, 2):
        path.unlink(missing_ok=True)
        launched(tmp_path, plan, Session(number=session))
    kept = sorted((path.parent / "disturbed").iterdir())
    assert [read_record(file).session for file in kept if file.stem.endswith(".2")] == [2]
    assert len(kept) == 2
