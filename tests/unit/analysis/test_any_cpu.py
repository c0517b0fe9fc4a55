"""The same words on every processor: last digits differ between them, and no word, verdict or
printed digit may.

``python -m tests.unit.analysis.test_any_cpu FILE`` writes the analysis of the example's studies to
a file.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.analysis.table.tables import read_table
from study.artifacts.plan import Plan
from study.base.files import ROOT
from tests.examples import EXAMPLE, STUDIES
from tests.unit.analysis.planted import analysis_of

pytestmark = pytest.mark.xdist_group("the example")
ENOUGH = 1e-5
"""Relative difference of a time or a bound that changes no decision."""
WITHOUT_WIDER_UNITS = {"NPY_DISABLE_CPU_FEATURES": "X86_V3,X86_V4", "OPENBLAS_CORETYPE": "Nehalem"}
"""What has numpy and its linear algebra compute as on a processor of 2008; nothing on one that is
no x86-64."""


def differences(one: Any, other: Any, where: str = "") -> Iterator[tuple[float, str]]:
    """Yield by how much each number of two analyses differs, over the larger; inf for words that
    differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key, value in one.items():
            yield from differences(value, other[key], f"{where}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, value in enumerate(one):
            yield from differences(value, other[place], f"{where}[{place}]")
    elif isinstance(one, float) and isinstance(other, float):
        # A law misses a level by a share of its time, which may be next to nothing.
        whole = 1.0 if ".misses." in where else max(abs(one), abs(other)) or 1.0
        yield abs(one - other) / whole, where
    else:
        yield 0.0 if one == other else float("inf"), where


def is_of_no_decision(where: str) -> bool:
    """Whether a number is a tail probability, whose digits no word depends on."""
    return where.endswith("_p")


def recorded(study: str) -> tuple[Plan, pd.DataFrame]:
    """A study of the example, and the table of its records."""
    plan = Plan.read(EXAMPLE / study / "plan.json")
    return plan, read_table(plan, EXAMPLE / study / "records", EXAMPLE / study / "telemetry")[0]


def analysed(plan: Plan, frame: pd.DataFrame) -> Any:
    """The analysis of a table, as it is written to a file."""
    return json.loads(analysis_of(plan.study, frame).model_dump_json())


@functools.cache
def found_here(name: str) -> Any:
    """The analysis of a study of the example on this processor."""
    return analysed(*recorded(name))


def largest(one: Any, other: Any) -> tuple[float, str]:
    """The largest difference of two analyses, and where it is."""
    return max(item for item in differences(one, other) if not is_of_no_decision(item[1]))


@pytest.mark.parametrize("name", STUDIES)
def test_times_that_differ_by_one_in_ten_thousand_million_have_the_same_words(name: str) -> None:
    plan, frame = recorded(name)
    rng = np.random.default_rng(1)
    times = [column for column in map(str, frame.columns) if column.endswith("_seconds")]
    frame[times] *= 1 + 1e-10 * rng.choice([-1.0, 1.0], frame[times].shape)
    assert largest(found_here(name), analysed(plan, frame)) < (ENOUGH, "")


def test_a_processor_without_wider_units_finds_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "analysis.json"
    command = [sys.executable, "-m", "tests.unit.analysis.test_any_cpu", str(file)]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    subprocess.run(command, cwd=ROOT, env=environment | WITHOUT_WIDER_UNITS, check=True)
    found = {name: found_here(name) for name in STUDIES}
    difference, where = largest(found, json.loads(file.read_text()))
    with capsys.disabled():
        print(f"\nwithout the processor's wider units: at most {difference:.1g} ({where})")
    assert difference < ENOUGH


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps({name: found_here(name) for name in STUDIES}))
