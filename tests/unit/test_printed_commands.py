"""Each command that the terminal, the page, an error or a document prints is typed: it names all
that it needs."""

import ast
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from study.artifacts.plan import StartCommand
from study.cli import _parser
from study.config.load import read_selection
from study.host.plan.configuration import as_snakemake_reads_it
from study.host.plan.workflow import _command
from tests.conftest import ROOT
from tests.unit.test_documents import MEANT_BY_A_SHELL, PAGES, commands, outside_quotes

TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
COMMAND = re.compile(
    rf"(?<![a-z])(?:python -m study [a-z]|make (?:{'|'.join(TARGETS)})\b)[^`;,)\n]*"
)


def texts(file: Path) -> Iterator[str]:
    """The texts of a Python file that are no docstring; what is put into one is the name of a
    study."""
    tree = ast.parse(file.read_bytes())
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            told |= {id(part) for part in node.values}
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "quickstart"
                for part in node.values
            )
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
        ):
            yield node.value


def printed() -> Iterator[tuple[str, str]]:
    """The commands in the texts of the code and in the documents, each with its file."""
    for file in sorted(
        path for folder in ("study", "extras") for path in (ROOT / folder).rglob("*.py")
    ):
        for text in texts(file):
            for command in COMMAND.findall(text):
                told = command.strip().removesuffix(".").replace("STUDY", "quickstart")
                yield file.relative_to(ROOT).as_posix(), told
    for page in PAGES:
        # which tells of what is gone, too
        for command in commands(page) if page.name != "CHANGELOG.md" else ():
            words = command.split()
            mentioned = words[:3] == ["python", "-m", "study"] and all(
                word[0] == "-" for word in words[4:]
            )
            if command.startswith(("python -m study ", "make ")) and not mentioned:
                yield page.relative_to(ROOT).as_posix(), command


CALLED = {"study": "study/__main__.py"}
FOUND = sorted(set(printed()))


def test_commands_are_found_in_the_code_and_in_the_documents() -> None:
    some = {"study/analysis/caveats/conditions.py", "study/analysis/analysis.py", "README.md"}
    assert some <= {file for file, _ in FOUND}
    assert len(FOUND) > 30


@pytest.mark.parametrize(("file", "command"), FOUND, ids=lambda text: text.replace("/", ".")[:60])
def test_a_printed_command_can_be_typed_as_it_stands(
    file: str, command: str, tmp_path: Path
) -> None:
    words = shlex.split(command, comments=True)
    assert not MEANT_BY_A_SHELL.search(outside_quotes(command.partition(" #")[0])), file
    if words[0] == "make":
        assert [word for word in words[1:] if "=" not in word and word not in TARGETS] == [], file
        for word in words:
            if word.startswith("ARGS=--config") and "key=value" not in word:
                given = shlex.split(word.removeprefix("ARGS="))
                read_selection(as_snakemake_reads_it(["--cores", "1", *given]))
        return
    arguments = [word for word in words[3:] if word not in ("|", ">", "&&")]
    _parser("study", arguments).parse_args(arguments)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "--config studies=[quickstart] 'overrides={training.epochs: 2, model.name: resnet34}'",
        "--config devices=[cpu] container=none size=reduced warm_up_run=false",
        "--directory {folder} --config quiet_wait_seconds=0 'overrides={dataset.path: my photos}'",
        "--profile {folder} --config container=none",
        "--cores 4 --config 'images={cpu: registry/image:1}' base_image=debian:12 devices=[cpu]",
    ],
)
@pytest.mark.parametrize("program", ["snakemake", "study"])
def test_the_next_start_that_is_printed_is_the_same_but_for_one_key(
    typed: str, program: str, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("keep-going: true\n")
    words = [word.replace("{folder}", str(tmp_path)) for word in shlex.split(typed)]
    cores = [] if "--cores" in words else ["--cores", "1"]
    before = read_selection(as_snakemake_reads_it([*words, *cores]))
    called = [CALLED.get(program, "snakemake"), *words]
    command = shlex.split(_command(before, called).again("quickstart", overrides={"replicates": 7}))
    again = command[command.index("--") + 1 :] if "--" in command else command[1:]
    for option, value in pairwise(words):
        if option in ("--directory", "--profile", "--cores"):
            assert f"{option}={value}" in again
    after = read_selection(as_snakemake_reads_it(again))
    assert after.overrides == before.overrides | {"replicates": 7}
    assert after.model_copy(update={"overrides": before.overrides}) == before


@pytest.mark.parametrize(
    ("program", "printed", "with_a_change"),
    [
        ("snakemake", "snakemake --cores 1 --config 'studies=[my.yaml]'", " 'devices=[cpu]'"),
        ("study", ".venv/bin/python -m study start my.yaml", " -- --config 'devices=[cpu]'"),
    ],
)
def test_a_study_that_was_called_by_its_file_is_printed_so_in_the_words_of_its_start(
    program: str, printed: str, with_a_change: str
) -> None:
    start = StartCommand.model_validate({"program": program, "files": {"my": "my.yaml"}})
    assert start.again("my") == printed
    assert start.again("my", devices=["cpu"]) == printed + with_a_change
    assert start.retry("my").endswith("python -m study retry my")
