"""Strange input at each edge is read, or ends in a sentence."""

from pathlib import Path

import pytest

from benchmarks.fuzz import EDGES, check
from tests.conftest import repeats

CASES = {"overrides": (200, 5000), "study files": (200, 5000)}
"""Cases of the edges that need neither a process nor a fit, in `make test` and in `make
test-all`."""


@pytest.mark.parametrize("edge", EDGES)
def test_strange_input_ends_in_a_sentence(
    edge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few, many = CASES.get(edge, (40, 200))
    check(edge, tmp_path, cases=len(repeats(few, many)))
