"""Strange input at each edge is read, or ends in a sentence. ``python -m benchmarks.fuzz`` sends more of it."""

from pathlib import Path

import pytest

from benchmarks.fuzz import EDGES, check
from tests.conftest import repeats


@pytest.mark.parametrize("edge", EDGES)
def test_strange_input_ends_in_a_sentence(edge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(edge, tmp_path, cases=len(repeats(40, 200)))
