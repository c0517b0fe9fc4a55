"""The words in a figure: whatever a machine or a class is called, they are drawn as they are
written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from study.analysis.figures.style import Drawn, printable, use_style
from study.analysis.step import save
from study.analysis.words import number
from study.base.files import ROOT


@pytest.mark.parametrize("name", ["GPU $\\frac{$", "GPU $5090$"])
def test_a_name_with_dollar_signs_is_drawn_with_them(name: str, tmp_path: Path) -> None:
    use_style()
    figure, title = Figure(), f"{name}, fp32 computed as TF32"
    axes = figure.subplots()
    axes.set_title(title)
    axes.plot([1.0, 2.0], label=name)
    axes.legend()
    save({"named": Drawn(figure, "", "", "")}, tmp_path / "figures")
    picture = (tmp_path / "figures" / "named.svg").read_text(encoding="utf-8")
    drawn_as = {
        words: group.count("<use ")
        for words, group in re.findall(r"(?s)<!-- (.*?) -->(.*?)(?:<g id=|</svg>)", picture)
    }
    # a shape for each sign: no formula ate one
    assert (drawn_as[name], drawn_as[title]) == (len(name), len(title))
    # no number of an axis is a formula either
    assert [words for words in drawn_as if "$" in words] == [title, name]


def test_a_control_character_is_drawn_as_a_sign_that_fonts_have() -> None:
    assert printable("a\x1b[31m b") == "a\N{REPLACEMENT CHARACTER}[31m b"


def test_a_callers_backend_and_style_file_reach_no_picture(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 30\n")
    code = f"""
from pathlib import Path
from matplotlib.figure import Figure
from study.analysis.figures.style import Drawn, use_style
from study.analysis.step import save
use_style()
figure = Figure()
figure.subplots().set_title("50%")
save({{"one": Drawn(figure, "", "", "")}}, Path({str(tmp_path / "figures")!r}))
"""
    variables = os.environ | {
        "MPLBACKEND": "module://no_such_package.backend",
        "PYTHONPATH": str(ROOT),
    }
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=variables, check=True)
    assert (tmp_path / "figures" / "one.png").is_file()


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.21e-5, "0.0000421"), (-9.996e-5, "-0.0001"), (0.00123, "0.00123"), (9.999, "10.0"), (0.0, "0"),
     (2e-8, "2e-08")],
)  # fmt: skip
def test_a_short_time_is_a_number_without_an_exponent(value: float, text: str) -> None:
    assert number(value) == text
