"""The blog's figures, made again of any results under the names that they have there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import study
from replications.gpu_blog import figures
from study.base.files import ROOT
from study.base.imports import imported
from tests.examples import EXAMPLE

pytestmark = pytest.mark.xdist_group("the figures of the example")


def test_the_blogs_figures_are_written_under_their_own_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert figures.main([str(EXAMPLE), str(tmp_path / "blog")]) == 0
    written = sorted((tmp_path / "blog").iterdir())
    assert [path.name for path in written] == ["GPU-batch-test.png", "batch_size_performance.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    assert not capsys.readouterr().err


def test_a_name_that_no_font_can_show_is_drawn_without_it(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    rows = {"mine\x1b]0;\x07 ok\n": {16: list[str]()}}
    monkeypatch.setattr(figures, "runs_on_gpu", lambda _: rows)
    picture = figures.panels(study.open(EXAMPLE)["photographs"])
    picture.draw_without_rendering()
    assert picture.subfigs[0].get_suptitle().startswith("mine]0; ok: GPU")
    assert not recwarn.list


@pytest.mark.parametrize(
    ("target", "serves"),
    [("blog-figures", True), ("report", True), ("example", True), ("blog-figures", False)],
)
def test_what_draws_installs_nothing_where_the_environment_serves(
    target: str, serves: bool, tmp_path: Path
) -> None:
    python, lock = tmp_path / ".venv/bin/python", tmp_path / "requirements-host.lock"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@"\ntest "$1" != -c || exit {1 - serves}\n')
    python.chmod(0o755)
    (tmp_path / ".venv/.host").touch()
    os.utime(tmp_path / ".venv/.host", (1, 1))
    lock.touch()
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "Makefile", tmp_path)
    words = ["make", "-C", str(tmp_path), target, f"PYTHON={python}"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert ("study.base.environment .venv requirements-host.lock" not in said) is serves
    assert "-m replications" in said or "-m study report" in said


def test_results_without_a_study_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert figures.main([str(tmp_path), str(tmp_path / "blog")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert figures.main([str(tmp_path)]) == 2


def test_what_belongs_to_a_document_uses_the_public_interface_alone_and_the_core_none_of_it() -> (
    None
):
    for file in (ROOT / "replications").rglob("*.py"):
        assert {name for name in imported(file) if name.partition(".")[0].startswith("study")} <= {
            "study"
        }, file
    for package in ("study", "extras"):
        for file in (ROOT / package).rglob("*.py"):
            assert not [
                name for name in imported(file) if name.partition(".")[0] == "replications"
            ], file
