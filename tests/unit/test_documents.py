"""The documents: their commands work as they stand, their studies are valid, and what they name is
there, each test of a promise, too."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from study.config.load import read_selection, read_study
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.configuration import as_snakemake_reads_it, study_folders
from study.host.plan.make import make_plan
from tests.conftest import ROOT
from tests.timings import analysed, as_timings

READMES = (ROOT / name / "README.md" for name in ("benchmarks", "config", "docker"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *READMES])
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
INLINE = re.compile(r"`((?:snakemake|make|python -m|docker|pip|conda|--config|--set) [^`]+)`")
LINE = re.compile(r"(?:'[^']*'|[^'\n])+")
"""A command of a block: it ends with its line, if that is not within quotes."""
MEANT_BY_A_SHELL = re.compile(r"[][{}*?~#!^<>|&;]|(^|\s)=")
"""What bash or zsh would not hand to a command as it stands. In a shell that is typed into, zsh
knows no comments."""

named = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return [
        text for told, text in FENCE.findall(page.read_text(encoding="utf-8")) if told == language
    ]


def commands(page: Path) -> list[str]:
    """The commands of a page, in blocks and within its text; one that goes over several lines is
    one."""
    found = [
        line for block in blocks(page, "sh") for line in LINE.findall(block.replace("\\\n", " "))
    ]
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    return found + INLINE.findall(prose)


def outside_quotes(command: str) -> str:
    """What a shell reads of a command and may change."""
    return re.sub(r"'[^']*'|\"[^\"]*\"", "", command)


@named
def test_every_block_says_what_language_it_is_in(page: Path) -> None:
    assert "" not in [told for told, _ in FENCE.findall(page.read_text(encoding="utf-8"))]


@named
def test_every_command_works_in_bash_and_in_zsh_as_it_stands(page: Path) -> None:
    for command in commands(page):
        assert not MEANT_BY_A_SHELL.search(outside_quotes(command)), command


def shell(
    name: str, *arguments: str, script: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """What a shell says of a script, in an empty folder. The test is skipped where there is no such
    shell."""
    if shutil.which(name) is None:
        pytest.skip(f"no {name} on this machine; .ci/run installs it")
    return subprocess.run(
        [name, *arguments], input=script, cwd=folder, capture_output=True, text=True, check=False
    )


def handed_over(name: str, commands: list[str], folder: Path) -> list[list[str]]:
    """The words that a shell makes of each command, which it does not execute."""
    script = "".join(f"printf '%s\\037' {command}\nprintf '\\036'\n" for command in commands)
    done = shell(name, *QUIET[name], script=script, folder=folder)
    assert done.stderr == ""
    return [words.split("\x1f")[:-1] for words in done.stdout.split("\x1e")[:-1]]


QUIET = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"]}
"""Options without which a shell reads a user's own files."""


@pytest.mark.parametrize("name", QUIET)
@named
def test_a_shell_takes_every_block_and_hands_over_every_word(
    page: Path, name: str, tmp_path: Path
) -> None:
    for block in blocks(page, "sh"):
        done = shell(name, *QUIET[name], "-n", script=block, folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), block
    plain = [command for command in commands(page) if not {"$", "`"} & set(command)]
    assert handed_over(name, plain, tmp_path) == [shlex.split(command) for command in plain]


@named
def test_every_start_that_is_shown_can_be_planned(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "studies"
    folder.mkdir()
    for written in blocks(page, "yaml"):
        (title,) = re.findall(r"^title: (\w+)$", written, re.MULTILINE)
        (folder / f"{title.lower()}.yaml").write_text(written, encoding="utf-8")
    for command in commands(page):
        program, *arguments = shlex.split(command)
        if program == "snakemake" and "key=value" not in arguments:
            selection = read_selection(as_snakemake_reads_it(arguments))
            studies = {
                name: read_study(name, [folder, *study_folders()], selection)
                for name in selection.studies
            }
            for name, study in studies.items():
                if study.dataset.source == "folder" or ":" in study.model.name:  # the reader's own
                    continue
                host = EngineChoice("none", "asked for")
                assert make_plan(name, study, host, {"cpu": None, "cuda": None}).runs, command


@named
def test_every_file_that_a_page_links_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    for link in links:
        assert ":" in link or (page.parent / link).exists(), link


def test_the_fit_of_a_table_prints_what_the_first_page_shows(tmp_path: Path) -> None:
    shown = blocks(ROOT / "docs" / "first-study.md", "text")
    (table,) = [block for block in shown if block.startswith("batch_size,seconds\n")]
    (tmp_path / "times.csv").write_text(table, encoding="utf-8")
    command = [sys.executable, "-m", "study", "fit", str(tmp_path / "times.csv")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said in shown


@pytest.mark.parametrize(
    "word",
    ["faster", "equal", "tied", "same here", "less, more, not", "cannot tell", "not decided"],
)
def test_the_guide_and_the_page_say_exactly_what_each_word_of_a_verdict_means(word: str) -> None:
    guide = (ROOT / "docs" / "reading-the-report.md").read_text(encoding="utf-8")
    page = ROOT / "study" / "analysis" / "report" / "templates" / "report.html.j2"
    assert f"\n| {word}" in guide
    assert f"<dt>{word}" in page.read_text(encoding="utf-8")


def test_the_claim_of_the_documents_own_study_is_judged(tmp_path: Path) -> None:
    """Its runs are planted: at batch size 64 they take half as long."""
    (written,) = blocks(ROOT / "docs" / "your-model.md", "yaml")
    (tmp_path / "mine.yaml").write_text(written, encoding="utf-8")
    study = read_study("mine", [tmp_path], read_selection({"studies": ["mine"]}))
    rows = [
        {"block": block, "training.batch_size": size, "fit_seconds": seconds * noise}
        for size, seconds in ((16, 2.0), (64, 1.0))
        for block, noise in enumerate((1.0, 1.01, 0.99, 1.02, 0.98 + seconds / 100))
    ]
    (row,) = analysed(study, as_timings(rows)).claims
    assert (row.claim, row.word) == ("Batch size 64 trains twice as fast as 16", "same here")


def test_every_promise_has_a_test_that_holds_it() -> None:
    page = (ROOT / "docs/promises.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+) \| (`(?:tests|extras)/.+) \|$", page, re.MULTILINE)
    assert len(rows) > 20
    for promise, named in rows:
        file = ""
        for test in re.findall(r"`([^`]+)`", named):
            file, name = test.split("::") if "::" in test else (file, test)
            assert f"def {name}(" in (ROOT / file).read_text("utf-8"), (promise, test)
