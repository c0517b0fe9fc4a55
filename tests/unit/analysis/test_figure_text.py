"""The words in a figure: whatever a machine or a class is called, they are drawn as they are
written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib import rc_context

from study.analysis.figures.rows import Dot, Row, RowGroup, RowsChart, rows_chart
from study.analysis.figures.style import printable, width_of
from study.analysis.stats.estimate import Estimate
from study.analysis.step import save
from study.analysis.words import number
from study.artifacts.plan import write_plans
from study.base.files import ROOT
from tests.conftest import tiny_plan
from tests.unit.analysis.test_charts import present


@pytest.mark.parametrize("name", ["GPU $\\frac{$", "GPU $5090$"])
def test_a_name_with_dollar_signs_is_drawn_with_them(name: str, tmp_path: Path) -> None:
    chart = present(
        rows_chart(
            RowsChart((RowGroup((Row(name, (Dot(2.0),), Estimate(value=2.0)),)),), "Every run")
        )
    )
    save({"named": chart}, tmp_path / "figures")
    for place in ("named.svg", "index.json"):
        text = (tmp_path / "figures" / place).read_text(encoding="utf-8")
        assert name in text.replace("\\\\", "\\")


def test_a_control_character_is_drawn_as_a_sign_that_fonts_have() -> None:
    assert printable("a\x1b[31m b") == "a\N{REPLACEMENT CHARACTER}[31m b"


POISON = ["text.usetex: True\nfont.family: monospace\nfoo: 1\n", "\udce9"]


@pytest.mark.parametrize("settings", POISON)
def test_no_setting_of_the_callers_reaches_a_picture_or_breaks_the_last_step(
    settings: str, tmp_path: Path
) -> None:
    """Backend, settings in the folder, in a file that is named, and at home, and a style there."""
    write_plans([tiny_plan()], tmp_path / "results")
    for name in ("matplotlibrc", "named", "home/matplotlibrc", "home/stylelib/own.mplstyle"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(settings, encoding="utf-8", errors="surrogateescape")
    variables = os.environ | {
        "MPLBACKEND": "nonsense",
        "MATPLOTLIBRC": str(tmp_path / "named"),
        "MPLCONFIGDIR": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
    }
    for verb, said in (("analyse", ""), ("report", "error: results: no run is there yet")):
        command = [sys.executable, "-m", "study", verb, "tiny"]
        done = subprocess.run(
            command, cwd=tmp_path, env=variables, check=False, capture_output=True, text=True
        )
        assert done.stderr.startswith(said)
        assert done.stderr.count("\n") == bool(said)
    with rc_context({"font.family": "monospace"}):
        assert width_of.__wrapped__("50%", 12, "normal") == width_of("50%", 12, "normal")


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.21e-5, "0.0000421"), (-9.996e-5, "-0.0001"), (0.00123, "0.00123"), (9.999, "10.0"), (0.0, "0"),
     (2e-8, "2e-08")],
)  # fmt: skip
def test_a_short_time_is_a_number_without_an_exponent(value: float, text: str) -> None:
    assert number(value) == text
