"""The pipeline as a user runs it: real processes, real records. The tests of a class build on each
other."""

import getpass
import json
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.conftest import TRANSFER
from tests.waiting import wait_for
from tests.workflow.conftest import OWN_MODEL, RECORDS, Checkout, copy_checkout, with_inputs

pytestmark = pytest.mark.thorough

NOISE = re.compile(
    "^(Select jobs|Execute .* jobs|Building DAG|Assuming|Using shell|Config "
    "file|Singularity|Complete log|Elapsed|"
    r"(?:local)?rule|\d+ of \d+ steps|Job stats|Finished job|Provided)",
    re.MULTILINE,
)
"""How Snakemake's own lines begin."""
END = re.compile("^(answer|job|claim|limit|may|next|report)(?= {2,})", re.MULTILINE)
"""How the last lines of a start begin."""
GOLDEN = [
    part.splitlines()
    for part in Path(__file__).with_name("golden_start.txt").read_text("utf-8").split("\n\n")
]
"""What a first start says until its answer, and a second one, without numbers. No other test holds
these words."""
FAILING = f"overrides={json.dumps({'replicates': 1, 'model.name': OWN_MODEL['name']})}"


@pytest.fixture(scope="class")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One copy for the tests of a class, in a folder with spaces, quotes and other letters."""
    return copy_checkout(tmp_path_factory.mktemp("shared") / 'a "copy" of 研究\'s')


PREPARED = ("data: ", "weights of ")


def words(said: str) -> list[str]:
    """The lines of a start that come before its answer, without times, accuracies and what chance
    alone decides."""
    text = re.sub(
        r"\b\d[\d.,]* (ms|s|minutes?)\b", "TIME", re.sub(r"accuracy \d+%", "accuracy A", said)
    )
    lines = re.sub(r"\bbs\d", "bsN", text).splitlines()
    kept = [
        line
        for line in lines
        if line and not END.match(line) and not line.startswith("Using workflow specific")
    ]
    # Data and weights are prepared in the order that Snakemake chooses.
    prepared = iter(sorted(line for line in kept if line.startswith(PREPARED)))
    return [next(prepared) if line.startswith(PREPARED) else line for line in kept]


def append(path: Path, line: str) -> None:
    """Edit a file in the one way that no other edit can break."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")


@pytest.mark.xdist_group("one study")
@pytest.mark.gate
class TestOneStudyFromStartToEnd:
    def test_the_first_start_measures_every_run_in_the_planned_order(
        self, shared: Checkout
    ) -> None:
        said = shared.good("overrides={replicates: 2}")
        page = shared.root / "results" / "report.html"
        assert page.is_file()
        assert not NOISE.search(said)
        (log,) = (shared.root / ".snakemake" / "log").iterdir()
        assert len(NOISE.findall(log.read_text(encoding="utf-8"))) > 10
        assert words(said) == GOLDEN[0]
        ends = END.findall(said)
        assert (ends[:2], ends[-1]) == (["answer", "job"], "report")
        assert f"report  {page.resolve().as_uri()}\n" in said
        records = shared.measured().values()
        assert {record.outcome for record in records} == {"ok"}
        assert len(records) == 4
        executed = [
            # two runs may begin in one second, which is all that a record tells
            record.position
            for record in sorted(records, key=lambda record: (record.started, record.position))
        ]
        told = re.findall(r"block (\d) of 2, run (\d) of 2: (bs\d-cpu-r\d): ok", said)
        assert [name for *_, name in told] == [
            record.run for record in sorted(records, key=lambda one: one.position)
        ]
        assert executed == [1, 2, 3, 4]
        assert {record.session for record in records} == {1}
        assert {record.started_as for record in records} == {"forked"}

    def test_records_read_back_and_hold_no_host_user_or_path(self, shared: Checkout) -> None:
        assert len(shared.measured()) == 4
        for text in map(bytes.decode, shared.records().values()):
            assert not re.search(r'"(/|[A-Z]:\\\\)', text)
            assert str(shared.root.parent) not in text
            names = re.findall(r'": "([^"]*)"', text)
            assert not any(name in (socket.gethostname(), getpass.getuser()) for name in names)

    def test_a_second_start_measures_nothing_and_changes_nothing(self, shared: Checkout) -> None:
        before = shared.records()
        times = {
            path: path.stat().st_mtime_ns
            for path in (shared.root / "results").rglob("*")
            if path.is_file()
        }
        done = shared.snakemake("overrides={replicates: 2}")
        assert words(done.stderr) == GOLDEN[1]
        assert END.findall(done.stdout)[0] == "answer"
        assert shared.records() == before
        after = {
            path: path.stat().st_mtime_ns
            for path in (shared.root / "results").rglob("*")
            if path.is_file()
        }
        assert after == times

    def test_an_added_level_measures_its_own_runs_as_a_new_session(self, shared: Checkout) -> None:
        before = shared.records()
        shared.good("overrides={replicates: 2, training.batch_size: [4, 8, 16]}", extra=RECORDS)
        assert before.items() <= shared.records().items()
        added = {
            (record.run, record.session)
            for name, record in shared.measured().items()
            if name not in before
        }
        assert added == {("bs16-cpu-r1", 2), ("bs16-cpu-r2", 2)}

    def test_fewer_levels_and_another_page_measure_nothing(self, shared: Checkout) -> None:
        before = shared.records()
        append(
            shared.root / "study" / "analysis" / "report" / "templates" / "report.html.j2",
            "<!-- edited -->",
        )
        shared.good("overrides={replicates: 1}")
        assert shared.records() == before
        assert "<!-- edited -->" in shared.page()
        assert (
            len((shared.root / "results/tiny/timings.csv").read_text(encoding="utf-8").splitlines())
            == 3
        )

    def test_an_order_to_make_everything_again_deletes_no_record(self, shared: Checkout) -> None:
        before = shared.records()
        said = shared.good("overrides={replicates: 1}", extra=["--forceall", *RECORDS])
        assert shared.records() == before
        assert "tiny, block 1 of 1: its records are there and are kept" in said

    def test_a_process_that_was_killed_once_it_had_published_is_not_measured_again(
        self, shared: Checkout
    ) -> None:
        """Snakemake has removed what it owns of that block: the index, which is made of the records
        again."""
        before = shared.records()
        indexes = {
            path: path.read_bytes() for path in (shared.root / "results/tiny/blocks").iterdir()
        }
        for path in indexes:
            path.unlink()
        said = shared.good(
            "overrides={replicates: 2, training.batch_size: [4, 8, 16]}", extra=RECORDS
        )
        assert shared.records() == before
        assert "cpu-r1: " not in said
        assert said.count("its records are there and are kept") == 2

    def test_runs_that_fail_or_lack_memory_are_recorded_and_the_old_records_stay(
        self, shared: Checkout
    ) -> None:
        """At one batch size the model asks for more than any machine has; at the other it fails."""
        before = shared.records()
        shared.plant("""
            if len(images) == 8:
                torch.empty(2**60)
            raise ValueError("planted in " + __file__)
        """)
        done = shared.snakemake(FAILING)
        assert done.returncode == 1, done.stdout
        assert done.stderr.rstrip().endswith("error: tiny: no run has succeeded")
        assert before.items() <= shared.records().items()
        new = {
            record.run: record for name, record in shared.measured().items() if name not in before
        }
        assert new.keys() == {"bs4-cpu-r1", "bs8-cpu-r1"}
        failed, lacking = new["bs4-cpu-r1"], new["bs8-cpu-r1"]
        assert (failed.outcome, failed.message) == ("failed", "ValueError: planted in nets.py")
        assert lacking.outcome == "out_of_memory"
        assert "you tried to allocate 4611686018427387904 bytes" in str(lacking.message)
        assert "planted in nets.py" in shared.page()
        assert "out of memory" in shared.page()

    def test_retry_brings_the_failed_runs_back_and_deletes_nothing(self, shared: Checkout) -> None:
        before, measured = shared.records(), shared.measured()
        done = shared.python("study", "retry", "tiny", "--outcome", "failed")
        assert "1 file(s) moved" in done.stdout
        aside = {
            path.name: path.read_bytes()
            for path in (shared.root / "results/tiny/records/superseded").iterdir()
        }
        assert shared.records() | aside == before
        shared.good(FAILING, extra=RECORDS)
        again = [shared.measured()[name] for name in aside]
        assert [record.outcome for record in again] == ["failed"]
        assert min(record.session for record in again) > max(
            measured[name].session for name in aside
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_snakemake_alone_ends_its_run_at_once_and_says_how_to_go_on(
    number: int, ready: Checkout
) -> None:
    """The second run would stand still for ever. A report of what is there is then one command."""
    ready.plant('while any(Path("results/tiny/records").glob("*.json")): time.sleep(0.1)')
    factors = {"device": ["cpu"], "training.batch_size": [4, 8]}
    ready.study("tiny", model=OWN_MODEL, factors=factors, curve=None)
    with ready.started() as process:
        wait_for(lambda: ready.records() and ready.jobs(), 240)
        process.send_signal(number)
        process.wait(60)
    assert ready.jobs() == []
    assert list((ready.root / "results").glob(".scratch-*")) == []
    told = ready.said()
    assert (
        "interrupted; kept: 1 of the 2 run(s) of this start. To go on, start it again. For a "
        "report of what" in told
    )
    assert "did not end well" not in told
    assert "Error" not in told
    assert "Traceback" not in told
    command = re.findall(r"what is there: python -m (.+)", told)[0].split()
    done = ready.python(*command)
    assert "1 of 2 planned runs are there: this is no final report.\ntiny: Missing: " in done.stderr
    assert "1 of 2 planned runs are there: this is no final report." in ready.page()
    ready.good("time_budget_minutes=0")
    assert ready.records() == {}  # the block was broken off, and is excluded


@pytest.mark.parametrize("at", ["study/host/plan/make.py", "workflow/rules/report.smk"])
@pytest.mark.parametrize("command", [["study", "start", "--"], ["snakemake"]])
def test_ctrl_c_before_the_first_step_is_one_sentence(
    at: str, command: list[str], checkout: Checkout
) -> None:
    """It comes while the plan is made, and when it is there."""
    # A shell's background job, such as a whole test run, ignores Ctrl-C, and so does all that it
    # starts.
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    append(checkout.root / at, f"import os, signal; {heard}; os.kill(os.getpid(), signal.SIGINT)")
    checkout.forked = False
    done = checkout.python(*command, "--cores", "1", "--config", "studies=[tiny]", "container=none")
    assert done.returncode in (130, -signal.SIGINT)
    last = done.stderr.splitlines()[-1]
    assert (
        last
        == "interrupted: each file that is there is whole, and the same command goes on from there"
    )
    assert "Traceback" not in done.stderr


def test_files_from_the_future_cost_no_record_and_stop_no_step(ready: Checkout) -> None:
    """The clock was set back by an hour after a first start: a new record is older than all that is
    there."""
    ready.good()
    before = ready.records()
    gone = (
        ready.root
        / "results"
        / "tiny"
        / "records"
        / next(name for name in before if name.startswith("bs8"))
    )
    gone.unlink()
    hour = time.time() + 3600
    for path in [*(ready.root / "results").rglob("*"), *(ready.root / "study").rglob("*.py")]:
        os.utime(path, (hour, hour))
    said = ready.good()
    assert re.findall(r"block 1 of 1, run \d of \d: (\S+): ok", said) == ["bs8-cpu-r1"]
    assert ready.records().keys() == before.keys()
    assert ready.measured()[gone.name].session == 2
    assert "older modification time" not in said
    assert "The runs come from 2 starts" in ready.page()
    assert "nothing is left to do" in ready.good()


def test_a_clock_that_is_set_back_during_a_run_costs_no_record_and_the_next_start_makes_the_page(
    checkout: Checkout,
) -> None:
    """What was prepared in this start, and the plan, then lie an hour ahead of the run's own
    files."""
    checkout.plant("""
        for path in Path("results").rglob("*.json"):
            os.utime(path, (time.time() + 3600,) * 2)
    """)
    checkout.study("tiny", model=OWN_MODEL)
    one = "overrides={training.batch_size: [8]}"
    checkout.snakemake(one)
    before = checkout.records()
    assert len(before) == 1
    checkout.good(one)
    assert checkout.records() == before
    assert checkout.page()
    assert "nothing is left to do" in checkout.good(one)


def test_two_starts_in_one_folder_do_not_meet(ready: Checkout) -> None:
    with ready.started():
        wait_for(lambda: (ready.root / "results" / "tiny" / "plan.json").is_file(), 60)
        second = ready.snakemake()
        assert second.returncode == 1
        assert "error: results: another start of the pipeline is at work" in second.stderr
        ready.good(extra=["--dry-run"])
    wait_for(lambda: not ready.jobs(), 20)


ALONE_AT_WORK = """
import fcntl
if self.steps == 1:
    self.alone = open("SHARED", "w")
    try:
        fcntl.flock(self.alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        Path("SHARED.overlap").touch()
while Path("held").exists():
    time.sleep(0.1)
"""
"""Each run holds a file until its process ends, and notes it if another one does; those of one
checkout stand still."""


def test_two_pipelines_with_different_folders_for_temporary_files_measure_in_turns(
    ready: Checkout, prepared: Path, tmp_path: Path
) -> None:
    other = with_inputs(copy_checkout(tmp_path / "another copy"), prepared)
    assert ready.environment()["TMPDIR"] != other.environment()["TMPDIR"]
    for one in (ready, other):
        one.variables["STUDY_MACHINE"] = ready.temporary.name
        one.plant(ALONE_AT_WORK.replace("SHARED", str(tmp_path / "at work")))
        one.study("tiny", model=OWN_MODEL)
    (ready.root / "held").touch()
    with ready.started() as first:
        wait_for(ready.jobs, 240)
        with other.started() as second:
            wait_for(lambda: "tiny, block 1 of 1: waiting: " in other.said(), 240)
            assert other.jobs() == []
            (ready.root / "held").unlink()
            assert [start.wait(300) for start in (first, second)] == [0, 0]
    for one in (ready, other):
        assert [record.outcome for record in one.measured().values()] == ["ok", "ok"]
    assert not (tmp_path / "at work.overlap").exists()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (["overrides={training.bach_size: 4}"], ["training.bach_size", "unknown key"]),
        (["overrides={training.batch_size: [17]}"], ["training.batch_size", "17", "16 images"]),
    ],
)
@pytest.mark.gate
def test_bad_input_is_one_line_before_any_work(
    checkout: Checkout, config: list[str], words: list[str]
) -> None:
    done = checkout.snakemake(*config)
    errors = [line for line in done.stderr.splitlines() if "rror" in line]
    assert done.returncode == 1
    assert len(errors) == 1
    assert all(word in errors[0] for word in words)
    assert "Traceback" not in done.stderr
    assert not (checkout.root / "results").exists()


@pytest.mark.gate
def test_a_fastai_study_runs_end_to_end(checkout: Checkout) -> None:
    checkout.study("tiny", **TRANSFER)
    checkout.good(
        "overrides={training.loop: fastai, loader.kind: workers, training.batch_size: [8]}",
        extra=RECORDS,
    )
    (record,) = checkout.measured().values()
    assert record.measurement and record.weights
    assert [epoch.images for epoch in record.measurement.epochs] == [16, 16]
    assert record.measurement.body_sha256 == record.weights.body_sha256
