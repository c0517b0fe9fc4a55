"""The ratchet: what the house weighs stands in ``weight.csv`` beside this file, and may only fall,
but for what a feature is ``granted``.

``python -m tests.unit.test_weight`` prints the weights, and the longest modules by words and by
lines. What comes in names what goes: the last two columns of the table say what changed a value,
and why.
"""

import ast
import csv
import io
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from study.base.files import ROOT

TABLE = Path(__file__).with_name("weight.csv")
CLOSE = 0.99
"""A table whose value is much larger than the weight would let what went come back: it is to be
lowered."""
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@cache
def tracked() -> list[Path]:
    """The files of the checkout that git knows."""
    command = ["git", "ls-files"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no git checkout: its files are not known")
    return [path for name in sorted({*done.stdout.splitlines()}) if (path := ROOT / name).is_file()]


def below(*folders: str, suffix: str = ".py") -> list[Path]:
    """The tracked files of these folders with a suffix."""
    return [
        one
        for one in tracked()
        if one.relative_to(ROOT).parts[0] in folders and one.suffix == suffix
    ]


def words_of_python(text: str) -> int:
    """The tokens of a module without comments, docstrings and layout; an f-string is one, as any
    text."""
    count, depth, begins = 0, 0, True
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token, following in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        name = tokenize.tok_name[token.type]
        depth += (name == "FSTRING_START") - (name == "FSTRING_END")
        if token.type in LAYOUT:
            begins = begins or token.type not in (tokenize.COMMENT, tokenize.NL)
            continue
        is_docstring = (
            begins and token.type == tokenize.STRING and following.type == tokenize.NEWLINE
        )
        begins = False
        if not is_docstring and (depth == 0 or (depth == 1 and name == "FSTRING_START")):
            count += 1
    return count


def words_of_text(text: str) -> int:
    """The words and signs of a template, a style or a script."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def total(files: list[Path], weigh: Callable[[str], int]) -> int:
    """The sum of what files weigh."""
    return sum(weigh(path.read_text(encoding="utf-8")) for path in files)


def lines(text: str) -> int:
    """The lines of a file."""
    return len(text.splitlines())


def is_test(path: Path) -> bool:
    """Whether a file is one of the tests, of the core or of an extra."""
    return "tests" in path.relative_to(ROOT).parts[:3]


def nested_comprehensions(text: str) -> int:
    """The comprehensions of a module with more than one ``for``."""
    return sum(
        isinstance(one, COMPREHENSIONS) and len(one.generators) > 1
        for one in ast.walk(ast.parse(text))
    )


def weights() -> dict[str, int]:
    """What the house weighs, by the names of the table."""
    core, extras = below("study"), [path for path in below("extras") if not is_test(path)]
    others = [
        path
        for suffix in (".j2", ".css", ".js", ".smk")
        for path in below("study", "workflow", suffix=suffix)
    ]
    every = [*core, *extras, *below("replications"), *below("benchmarks")]
    return {
        "words of the core": total(core, words_of_python),
        "words of templates, styles, scripts and rules": total(others, words_of_text),
        "words of the extras": total(extras, words_of_python),
        "words of the replications": total(below("replications"), words_of_python),
        "words of the logger plugin": total(
            below("snakemake_logger_plugin_study"), words_of_python
        ),
        "modules of the core": sum(path.name != "__init__.py" for path in core),
        "lines of tests": total(
            [path for path in below("tests", "extras") if is_test(path)], lines
        ),
        "lines of benchmarks": total(below("benchmarks"), lines),
        "comprehensions with two for": total(every, nested_comprehensions),
        "tracked files": len(tracked()),
    }


def values_of(text: str, column: str = "most") -> dict[str, int]:
    """The values of a column of a table, by name."""
    return {row["weight"]: int(row[column]) for row in csv.DictReader(io.StringIO(text))}


def earlier() -> Iterator[dict[str, int]]:
    """The values of each committed version of the table."""
    name = TABLE.relative_to(ROOT).as_posix()
    commits = subprocess.run(
        ["git", "log", "--format=%H", "--", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for commit in commits.stdout.split():
        shown = subprocess.run(
            ["git", "show", f"{commit}:{name}"], cwd=ROOT, capture_output=True, text=True
        )
        if shown.returncode == 0:
            yield values_of(shown.stdout)


def test_nothing_weighs_more_than_its_row_of_the_table_says_and_a_row_says_no_more_than_it_needs() -> (
    None
):
    most, found = values_of(TABLE.read_text(encoding="utf-8")), weights()
    assert found.keys() == most.keys()
    heavier = {name: (weight, most[name]) for name, weight in found.items() if weight > most[name]}
    assert not heavier, "something has to go, or a shorter way be found"
    loose = {
        name: (weight, most[name]) for name, weight in found.items() if weight < CLOSE * most[name]
    }
    assert not loose, "lower these values of the table: what went is not to come back"


def test_no_value_of_the_table_has_risen() -> None:
    table = TABLE.read_text(encoding="utf-8")
    now, granted = values_of(table), values_of(table, "granted")
    for before in earlier():
        risen = {name for name in now if now[name] - granted[name] > before.get(name, now[name])}
        assert risen == set()


def test_a_word_is_a_token_that_is_no_layout_comment_or_docstring() -> None:
    text = (
        '"""A docstring."""\n\n# a comment\ndef f(x: int) -> str:\n    """Another."""\n   '
        ' return f"{x}, {x + 1}"\n'
    )
    assert words_of_python(text) == 12
    assert nested_comprehensions("[x for row in table for x in row]\n[x for x in row]") == 1


if __name__ == "__main__":
    for weight, value in weights().items():
        print(f"{value:8} {weight}")
    for title, weigh in (("words", words_of_python), ("lines", lines)):
        heaviest = sorted(
            below("study"), key=lambda path: weigh(path.read_text(encoding="utf-8")), reverse=True
        )[:10]
        for path in heaviest:
            print(f"{weigh(path.read_text(encoding='utf-8')):8} {title} {path.relative_to(ROOT)}")
