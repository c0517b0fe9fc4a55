"""Every command that a reader may type works in bash and in zsh as it stands: zsh expands brackets, bash braces."""

import ast
import re
import shlex
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

PROGRAMS = ("snakemake", "make", "python", "python3", "docker", "pip", "conda", "training-study", ".venv/bin/", ".ci/")
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / folder / "README.md" for folder in ("benchmarks", "config", "docker")),
]
COMMENTED = [
    ROOT / "Makefile",
    ROOT / "Snakefile",
    ROOT / "workflow" / "Snakefile",
    *(ROOT / "workflow").rglob("*.smk"),
    *(ROOT / "config").rglob("*.yaml"),
]
MODULES = sorted(path for package in ("study", "study_extras") for path in (ROOT / package).rglob("*.py"))
BLOCK = r"(?ms)^```\w*\n(.*?)^```$"
EXPANDED = "[]{}*?"
"""What a shell expands outside quotes. None of our commands means a file pattern."""


def expanded(command: str) -> str:
    """Return what a shell would expand in a command, which ends where a comment begins."""
    quote, found, before = "", "", " "
    characters = iter(command)
    for one in characters:
        if quote:
            quote = "" if one == quote else quote
            if one == "\\" and quote == '"':
                next(characters, "")
        elif one == "#" and before.isspace():
            break
        elif one == "\\":
            next(characters, "")
        elif one in "'\"":
            quote = one
        elif one in EXPANDED:
            found += one
        before = one
    return found + quote


def is_whole(command: str) -> bool:
    """Whether a command ends with its line: no quote is open, and no backslash joins the next line to it."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return not command.endswith("\\")


def begins_a_command(line: str) -> bool:
    words = re.sub(r"^(\$ |\. \S+ && |[A-Z_]+=\S+ )+", "", line).split()
    return bool(words) and words[0].startswith(PROGRAMS) and (words[0] in PROGRAMS or "/" in words[0])


def of_a_page(text: str) -> Iterator[str]:
    """Yield the commands in the blocks of a page, each in one piece, and those within its sentences."""
    for block in re.findall(BLOCK, text):
        command = ""
        for line in block.splitlines():
            if not command and not begins_a_command(line):
                continue
            command = f"{command}\n{line}" if command else line
            if is_whole(command):
                yield command
                command = ""
        assert not command, f"a quote is never closed: {command}"
    for code in re.findall(r"`([^`]+)`", re.sub(BLOCK, "", text)):
        if begins_a_command(code) or code.startswith(("--config ", "--set ")):
            yield code


def of_comments(text: str) -> Iterator[str]:
    """Yield the commands in the comments of a file."""
    for comment in re.findall(r"#+ (.*)", text):
        for found in re.finditer(r"\b(snakemake|make|python -m study) .*|--config .*|ARGS=.*", comment):
            yield arguments_of(found.group())


def arguments_of(text: str) -> str:
    """Return the start of a sentence up to the last ``key=value``: what follows is the sentence's."""
    value = r"""(?:'[^']*'|"[^"]*"|\[[^\]]*\]|\{[^}]*\}|[^\s;,()'"\[\]{}]+)*"""
    word = rf"""(?:'[^'=]*=[^']*'|"[^"=]*=[^"]*"|[\w.]+={value})"""
    last = max((match.end() for match in re.finditer(word, text)), default=0)
    return text[:last]


def of_a_module(text: str) -> Iterator[str]:
    """Yield the commands in the texts of a module; a value that is filled in is the word ``X``."""
    if not re.search(r"--(config|set)\b", text):
        return  # and nothing is parsed
    nodes = list(ast.walk(ast.parse(text)))
    filled = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in filled:
            parts = [node.value]
        else:
            continue
        for found in re.finditer(r"--(config|set)\b[^`\n]*", "".join(map(str, parts))):
            yield arguments_of(found.group())


def all_commands() -> Iterator[tuple[str, str]]:
    """Yield each command with the name of its file."""
    for paths, commands in ((PAGES, of_a_page), (COMMENTED, of_comments), (MODULES, of_a_module)):
        for path in paths:
            for command in commands(path.read_text(encoding="utf-8")):
                if command:
                    yield str(path.relative_to(ROOT)), command


COMMANDS = sorted(set(all_commands()))


@pytest.mark.parametrize(("file", "command"), COMMANDS)
def test_no_shell_expands_anything_in_a_command_that_people_are_told_to_type(file: str, command: str) -> None:
    assert expanded(command) == "", f"{file}: quote the brackets, as in 'studies=[batch-size]': {command}"


def test_commands_are_found_in_pages_comments_and_messages() -> None:
    files = {file for file, _ in COMMANDS}
    assert {"README.md", "docker/README.md", "config/config.yaml", "study/host/engine/bring.py"} <= files
    assert sum("[" in command or "{" in command for _, command in COMMANDS) >= 5


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("snakemake --config studies=[batch-size]", "[]"),
        ("snakemake --config 'studies=[batch-size]'", ""),
        ('snakemake --config "studies=[x]" overrides={a: 1}', "{}"),
        ("snakemake --config 'overrides={\"a\": [1]}' # [each]", ""),
        ("make study ARGS=\"--config 'studies=[x]'\"", ""),
        ("make study ARGS='--config", "'"),
        ("python -m study plan x --set a=\\[1\\]", ""),
        ("docker run x#[1]", "[]"),
    ],
)
def test_what_a_shell_would_expand_is_seen(command: str, found: str) -> None:
    assert expanded(command) == found


def test_a_command_over_several_lines_is_one_command() -> None:
    block = "results/[x]  a file\nsnakemake --config 'overrides={a: 1,\n  b: [2]}'\nmake study \\\n  A=[1]\n"
    page = f"```\n{block}```\n`make [x]`"
    assert [expanded(command) for command in of_a_page(page)] == ["", "[]", "[]"]


def test_a_commands_words_are_told_from_the_sentence_around_it() -> None:
    text = "look at it, leave the GPU out (--config devices=[cpu]) or run on the host [now]"
    (command,) = of_a_module(f"TEXT = {text!r}")
    assert command == "--config devices=[cpu]"
    assert expanded(command) == "[]"
