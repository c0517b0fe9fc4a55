import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest

from study.analysis.step import save
from study.artifacts.layout import Results
from study.artifacts.plan import write_plans
from study.base.errors import StudyError
from study.base.fork_server import FORK_SERVERS
from study.cli import main, step
from study.verbs.declare import EXTRAS, SHOWN, VERBS, load
from tests.conftest import ROOT, tiny_plan
from tests.examples import EXAMPLE, with_analysis


def test_what_a_run_waits_for_imports_neither_torch_nor_pandas() -> None:
    """No run waits for what its telemetry needs later."""
    heavy = {"torch", "pandas", "pyarrow", "fastai", "matplotlib", "scipy"}
    modules = "study.cli, study.host.steps.block, study.host.steps.prepare"
    code = f"import {modules}, sys; print({heavy} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT) == "set()\n"


def test_the_help_shows_nine_verbs_at_most_and_names_the_extras(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown, _, more = capsys.readouterr().out.partition("More verbs")
    assert re.findall(r"^    (\w+) ", shown, re.MULTILINE) == list(SHOWN)
    assert len(SHOWN) <= 9
    assert re.findall(r"\w+", more.partition(":")[2]) == list(EXTRAS)


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_of_the_table_is_where_it_says_and_has_a_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(f"usage: study {name} ")
    assert " ".join(load(name).help.split()) in said


def test_plan_prints_the_table_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--set", "training.batch_size=[16, 32]", "--results", "nowhere"]
    assert main(["plan", "quickstart", *options]) == 0
    table, _, summary = capsys.readouterr().out.partition("\n\n")
    lines = table.splitlines()
    head = ["position", "block", "name", "device", "training.batch_size", "key"]
    assert re.split(" {2,}", lines[0]) == head
    assert len(lines) == 1 + 2 * 2 * 3
    assert sum(line.endswith("  unavailable") for line in lines) == 2 * 3
    assert summary.splitlines() == [
        "quickstart: 12 runs planned",
        "quickstart on cpu: 6 runs pending in 3 blocks, 0 done",
        "quickstart on cuda: 6 runs left out: CUDA_VISIBLE_DEVICES hides every GPU",
        "expected time: not known until the first block is done",
    ]


def spelt(text: str, names: Mapping[str, object]) -> str:
    """The text with what its words in capitals stand for."""
    return re.sub("|".join(names), lambda match: str(names[match.group()]), text)


FILES = ["gone", "folder", "empty", "text", "bytes", "null", "list", "object", "deep"]
FILES += ["samples", "below/a/file"]
"""Things in the place of a file that a verb reads."""
NAMES = ["nope", "", ".", "..", "../x", "a/b", "/a/b", "x" * 300, "a\nb", "$(x)", "é", "\udcff"]
STEP_VERBS = ("image", "dataset", "weights", "measure")
OUT = "--output OUT"
READERS = ("report", "bundle")
WRONG: dict[str, tuple[list[str], list[str]]] = {
    "a plan": ([f"{verb} WRONG cpu" for verb in STEP_VERBS], [*FILES, "FIT"]),
    "a table": (["fit WRONG"], [*FILES, "FIT"]),
    "a file to write": (["fit TABLE --output WRONG"], ["folder", "pipe", "empty/x", "x" * 300]),
    "a study with results": (
        [
            *(f"{verb} WRONG {OUT}" for verb in (*READERS, "report --from-tables")),
            *("retry WRONG", "retry WRONG --weights", "analyse WRONG"),
        ],
        [*NAMES, "half", "damaged"],
    ),
    "a study with an analysis": (["answer WRONG"], [*NAMES, "half"]),
    "a name": (
        [
            *(f"{verb} TINY WRONG" for verb in STEP_VERBS),
            *(f"plan quickstart --{option}" for option in ("set WRONG", "set WRONG=1")),
            *("plan quickstart --device WRONG", "plan WRONG", "fit TABLE WRONG"),
            *("start -- --no-such-option WRONG", "retry tiny --outcome WRONG", "WRONG"),
        ],
        NAMES,
    ),
    "a folder of results": (
        [
            *(f"{verb} --results WRONG {OUT}" for verb in (*READERS, "report tiny")),
            *(f"{verb} --results WRONG" for verb in ("retry tiny", "answer")),
        ],
        ["gone", "folder", "empty", "empty/x"],
    ),
    "a bundle": (
        ["unbundle WRONG OUT", "compare WRONG WRONG", "compare WRONG OTHER"],
        [*FILES, "PLAN", "x" * 300],
    ),
    "nothing": (
        ["", *["analyse", "fit", "bundle", "unbundle"], f"report {OUT}", "report --from-tables"],
        [""],
    ),
}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the words that stand for files in :data:`WRONG`. Relative names are looked up in the
    folder ``HERE``."""
    here = tmp_path_factory.mktemp("here")
    contents = {"empty": "", "text": "hello\nworld", "null": "null", "list": "[]", "object": "{}"}
    for name, text in (contents | {"deep": "[" * 9999}).items():
        (here / name).write_text(text)
    (here / "bytes").write_bytes(b"\xff\0\xfe")
    (here / "folder").mkdir()
    (here / "folder" / "precious").write_text("kept")
    os.mkfifo(here / "pipe")
    results = here / "results"
    write_plans([tiny_plan()], results)
    study = with_analysis("photographs-speedup") / "photographs-speedup"
    (here / "damaged").mkdir()
    for record in (study / "records").glob("*.json"):
        (here / "damaged" / record.name).write_text("{}")
    shutil.copy(next((study / "telemetry").glob("*.parquet")), here / "samples")
    (here / "table.csv").write_text("batch_size,seconds\n16,2\n32,1\n")
    for name in ("half", "damaged"):
        (results / name).mkdir()
        shutil.copy(study / "plan.json", results / name)
    for name in ("timings.csv", "fit.json"):
        shutil.copy(study / name, results / "damaged")
    (results / "damaged" / "figures").mkdir()
    (results / "damaged" / "figures" / "index.json").write_text('[{"name": 1}]')
    return {
        "HERE": here,
        "PLAN": study / "plan.json",
        "FIT": study / "fit.json",
        "OTHER": EXAMPLE / "photographs",
        "TINY": Results(results).plan("tiny"),
        "TABLE": here / "table.csv",
    }


@pytest.mark.parametrize(
    ("command", "wrong"),
    [pair for commands, wrongs in WRONG.values() for pair in product(commands, wrongs)],
)
def test_every_verb_with_every_wrong_thing_ends_in_one_line(
    command: str,
    wrong: str,
    things: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(things["HERE"])
    words = {**things, "OUT": tmp_path / "out", "WRONG": spelt(wrong, things)}
    try:
        code = main([spelt(word, words) for word in command.split()])
    except SystemExit as end:
        code = int(end.code or 0)
    error = capsys.readouterr().err
    assert code in (1, 2)
    assert (error[:7], error[-1:]) == ("error: ", "\n")
    assert error[:-1].isprintable()
    assert (things["HERE"] / "folder" / "precious").read_text() == "kept"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("new out/nothing/x.yaml", "out/nothing is a link to 'gone', where nothing is"),
        ("new out/loop/x.yaml", "out/loop is a link to 'loop', where nothing is"),
        ("new out/" + "x" * 300 + "/x.yaml", "File name too long"),
        ("new out/file/x.yaml", "out/file is a file; allowed: a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_named_with_what_lies_there(
    verb: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(tmp_path, "nothing").symlink_to("gone")
    Path(tmp_path, "loop").symlink_to("loop")
    Path(tmp_path, "file").touch()
    assert main([word.replace("out", str(tmp_path)) for word in verb.split()]) == 1
    assert told.replace("out", str(tmp_path)) in capsys.readouterr().err


STEERING = "\x1b[2J\x1b]0;mine\x07 <b>\u202e"
"""Words that clear a terminal, rename its window and turn what follows."""


def test_hostile_words_are_printed_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = tmp_path / "times.csv"
    times.write_text(f"{STEERING},seconds\n16,2\n32,1\n64,1.5\n", encoding="utf-8")
    assert main(["fit", str(times), STEERING]) == 0
    said = capsys.readouterr().out
    assert all(line.isprintable() for line in said.splitlines())
    assert "\\x1b[2J\\x1b]0;mine\\x07 <b>\\u202e" in said


def test_ctrl_c_is_a_sentence_and_that_of_a_step_is_its_starts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("study.host.plan.configuration.snakemake", interrupted)
    assert main(["start"]) == 130
    said = "interrupted: each file that is there is whole, and the same command goes on from there"
    assert capsys.readouterr().err == f"{said}\n"
    # a step's process is its own, and this one is not
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setenv(FORK_SERVERS, f"{os.getppid()} code")
    assert step("start") == 130
    assert capsys.readouterr().err == ""


def test_a_message_stands_in_the_log_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plans([tiny_plan()], tmp_path)
    log = tmp_path / "logs" / "a.log"
    assert main(["dataset", str(Results(tmp_path).plan("tiny")), "nope", "--log", str(log)]) == 1
    assert log.read_text() == capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--log"])
@pytest.mark.parametrize("kind", ["records", "telemetry"])
def test_no_file_that_a_verb_writes_replaces_a_measurement(
    option: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = next((EXAMPLE / "photographs-speedup" / kind).glob("*.*"))
    copy = Path(shutil.copy(measured, tmp_path))
    told = "is not allowed: a measurement lies there; name another file"
    for words in ("fit times.csv" if option == "--output" else "analyse tiny", "report"):
        with pytest.raises(SystemExit, match="2"):
            main([*words.split(), option, str(copy)])
        assert told in capsys.readouterr().err
    assert copy.read_bytes() == measured.read_bytes()


def test_the_locks_name_no_host_and_pin_every_line_with_a_hash() -> None:
    pinned: dict[str, set[str]] = {}
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text(encoding="utf-8")
        assert "://" not in text
        assert "index" not in text.split("annotated")[0]
        pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        assert all("==" in pin and pin.endswith("\\") for pin in pins)
        pinned[lock.stem] = {re.sub(r"\[.*?\]", "", pin).split(" ")[0] for pin in pins}
    assert len(pinned) == 6
    assert not [pin for pin in pinned["requirements-host"] if pin.startswith("torch==")]
    assert pinned["requirements-host"] <= pinned["requirements"]


def test_nothing_is_installed_in_an_image_without_a_checksum() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    installed = re.findall(r"pip install[^&|;}]*", text)
    assert len(installed) >= 2
    assert all("--require-hashes" in command for command in installed), installed


def test_figures_replace_nothing_but_figures(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "one.json").write_text("{}")
    with pytest.raises(StudyError, match="cannot be replaced by figures: it holds one"):
        save({}, tmp_path / "records")
    assert (tmp_path / "records" / "one.json").read_text() == "{}"


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_caller_closed_is_no_error(closed: str) -> None:
    command = f"exec {sys.executable} -m study answer photographs-speedup --results {EXAMPLE}"
    shell = ["sh", "-c", f"{command} {closed}"]
    done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("target", ["", ".", "pipe", "/dev/null"])
def test_what_is_no_file_is_refused_as_a_target_before_any_work(
    target: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe would be waited for without end, and a device replaced by a file."""
    os.mkfifo(here / "pipe")
    told = f"{target!r} is not allowed: it is no file; name a file to write"
    for verb, option in [("report", "--output"), ("report", "--log"), ("bundle", "--output")]:
        with pytest.raises(SystemExit, match="2"):
            main([verb, option, target])
        assert told in capsys.readouterr().err
