"""Damaged files in a results folder stop no step: the page names each, and no number has it."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from study.analysis.analysis import read_analysis
from study.analysis.caveats.runs import RefusedFiles
from study.analysis.table.tables import read_timings
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import sealed
from study.artifacts.telemetry import COLUMNS, write_parquet
from study.base.files import file_sha256, write_new
from study.cli import main
from tests.conftest import tiny_plan
from tests.unit.analysis.planted import only, with_measured
from tests.unit.artifacts.test_records import make_record

Damage = Callable[[Plan, Results], None]


@pytest.fixture
def plan() -> Plan:
    return tiny_plan(replicates=2)


@pytest.fixture
def files(plan: Plan, tmp_path: Path) -> Results:
    """Sealed records of every run, each with samples of its own that lie in its time."""
    files = Results(tmp_path)
    write_plans([plan], tmp_path)
    for number, run in enumerate(plan.runs):
        record = with_measured(
            make_record(plan, number, fit_seconds=1.0 + 0.01 * number), fit_started=100.0 + number
        )
        samples = files.telemetry(plan.name, run.file)
        write_parquet(
            pd.DataFrame({name: [100.0 + number, 100.5 + number] for name in COLUMNS}), samples
        )
        record = sealed(record.model_copy(update={"telemetry_sha256": file_sha256(samples)}))
        write_new(files.record(plan.name, run.file), record.model_dump_json(indent=1))
    return files


def verbs(files: Results) -> dict[str, list[str]]:
    """Every verb of the analysis of the study with its arguments."""
    return {
        "analyse": ["analyse", "tiny", "--results", str(files.root)],
        "report": [
            "report",
            "--from-tables",
            "tiny",
            "--results",
            str(files.root),
            "--output",
            str(files.report),
        ],
    }


def analysed(files: Results) -> str:
    """The page that every verb made, each with exit code 0."""
    assert [main(verb) for verb in verbs(files).values()] == [0, 0]
    return files.report.read_text(encoding="utf-8")


def test_a_whole_folder_refuses_nothing(plan: Plan, files: Results) -> None:
    page = analysed(files)
    assert "does not fit" not in page
    assert "checksum of their own" not in page
    assert read_timings(files.timings("tiny"), plan)["cpu_percent"].tolist() == [
        (100.0 + number + 100.5 + number) / 2 for number in range(4)
    ]


def test_refused_records_are_named_by_file_and_key_and_the_others_are_analysed(
    plan: Plan, files: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    copied, edited = (
        files.record("tiny", plan.runs[0].file),
        files.record("tiny", plan.runs[1].file),
    )
    copied.write_bytes(files.record("tiny", plan.runs[3].file).read_bytes())
    edited.write_text(edited.read_text().replace('"fit_seconds": 1.01', '"fit_seconds": 0.101'))
    before = {path: path.read_bytes() for path in files.records("tiny").iterdir()}
    page = analysed(files)
    table = read_timings(files.timings("tiny"), plan)
    assert table["outcome"].tolist() == ["refused", "refused", "ok", "ok"]
    assert table["fit_seconds"].dropna().tolist() == [1.02, 1.03]
    caveats = only(RefusedFiles, read_analysis(files.fit("tiny")).warnings)
    assert [(caveat.files, caveat.reason.split(":")[0]) for caveat in caveats] == [
        ([copied.name], "run"),
        ([edited.name], "record_sha256"),
    ]
    assert all(
        f"{path.name} does not fit: {key}: " in page
        for path, key in ((copied, "run"), (edited, "record_sha256"))
    )
    assert "2 of 4 planned runs are there" in page
    assert capsys.readouterr().err == (
        "tiny: 2 records do not fit and are not used; the report says which and why. "
        "To measure again: python -m study retry tiny\n"
    )
    assert {path: path.read_bytes() for path in files.records("tiny").iterdir()} == before


def test_the_page_is_made_if_every_record_is_refused(plan: Plan, files: Results) -> None:
    for path in files.records("tiny").iterdir():
        path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 3}))
    page = analysed(files)
    assert "<td>refused</td>" in page
    assert (
        "schema_version: 3 is not allowed: another version of this software wrote the file" in page
    )
    assert "0 of 4 planned runs are there" in page


def test_a_damaged_record_that_was_excluded_is_named(plan: Plan, files: Results) -> None:
    path = files.records("tiny") / "disturbed" / plan.runs[0].file
    path.parent.mkdir()
    path.write_text("{")
    assert f"disturbed/{path.name} does not fit: it is not JSON" in analysed(files)


def of_another_run(path: Path) -> None:
    other = next(file for file in path.parent.iterdir() if file != path)
    path.write_bytes(other.read_bytes())


@pytest.mark.parametrize(
    "damage",
    [
        of_another_run,
        Path.unlink,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:200]),
        lambda path: pd.DataFrame({"seconds": [1.0]}).to_parquet(path),
    ],
    ids=["another run's", "absent", "empty", "truncated", "other columns"],
)
def test_a_run_whose_samples_do_not_fit_keeps_its_times_alone(
    plan: Plan, files: Results, damage: Callable[[Path], object]
) -> None:
    path = files.telemetry("tiny", plan.runs[0].file)
    damage(path)
    page = analysed(files)
    table = read_timings(files.timings("tiny"), plan)
    assert table["outcome"].tolist() == ["ok"] * 4
    assert table["cpu_percent"].isna().tolist() == [True, False, False, False]
    (caveat,) = only(RefusedFiles, read_analysis(files.fit("tiny")).warnings)
    assert caveat.files == [path.name]
    assert caveat.reason.startswith("telemetry_sha256: ")
    assert f"{path.name} does not fit: telemetry_sha256: " in page


def test_an_analysis_of_another_time_ends_the_page_with_one_line(
    files: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    analysed(files)
    whole = json.loads(files.fit("tiny").read_text())
    files.fit("tiny").write_text(json.dumps(whole | {"y": "outcome"}))
    assert main(verbs(files)["report"]) == 1
    assert "error: fit.json: y: 'outcome' is not allowed: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: "", "it is not JSON ("),
        (lambda text: text[:200], "it is not JSON ("),
        (lambda text: "{}", "name: missing"),
        (
            lambda text: text.replace('"block": 1', '"block": "x"', 1),
            "runs.0.block: 'x' is not allowed",
        ),
        (lambda text: text.replace('"name": "bs', '"name": "../bs', 1), "name: '../bs"),
        (
            lambda text: re.sub(r'("training.batch_size": )(\d+)', r"\1[\2]", text, count=1),
            "runs.0.setting.levels",
        ),
        (lambda text: text.replace('"replicates"', '"copies"', 1), "study.copies: unknown key"),
    ],
    ids=["empty", "truncated", "no keys", "type", "another folder", "list", "unknown key"],
)
def test_a_damaged_plan_ends_each_verb_with_one_line(
    files: Results, capsys: pytest.CaptureFixture[str], damage: Callable[[str], str], words: str
) -> None:
    analysed(files)
    path = files.plan("tiny")
    path.write_text(damage(path.read_text()))
    more = [[verb, str(path), "x", "--results", str(files.root)] for verb in ("dataset", "weights")]
    for verb in (*verbs(files).values(), *more):
        assert main(verb) == 1
        told = capsys.readouterr().err
        assert told.startswith(f"error: {path.parent.name}/plan.json: not a valid plan: {words}")
        assert told.count("\n") == 1
