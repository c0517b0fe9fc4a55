"""README's table says what the committed examples found, ``python -m tests.unit.test_readme`` writes
it anew, and README stays short."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from study.base.files import ROOT
from tests.examples import STUDIES, with_analysis

README = ROOT / "README.md"


def found(study: str) -> dict[str, Any]:
    """What the analysis of a study of the example says."""
    read: dict[str, Any] = json.loads(
        (with_analysis(study) / study / "fit.json").read_text(encoding="utf-8")
    )
    return read


def claims() -> Iterator[str]:
    """The rows of README's table of claims: the words of the report."""
    for study in STUDIES:
        for row in found(study)["claims"]:
            word = ": ".join(filter(None, [row["word"], row["note"]]))
            yield f"| {row['claim']} | {row['measured']} | **{word}** |"


def written(text: str) -> str:
    """README's ``text`` with its table as the examples have it."""
    table = re.search(r"\| what was published \|.*\n\| --- .*\n((?:\|.*\n)*)", text)
    assert table
    return text[: table.start(1)] + "".join(f"{row}\n" for row in claims()) + text[table.end(1) :]


@pytest.mark.xdist_group("the example")
def test_readme_has_the_numbers_of_the_committed_examples() -> None:
    """Its words may be those of the last release."""
    text = README.read_text(encoding="utf-8")
    kept, now = (re.findall(r"\d[\d.,]*", one) for one in (text, written(text)))
    assert kept == now, "run: python -m tests.unit.test_readme"
    assert len(list(claims())) >= 3


def test_readme_is_read_in_two_minutes() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= 400


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
