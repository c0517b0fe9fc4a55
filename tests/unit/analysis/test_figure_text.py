"""The words in a figure: whatever a machine or a class is called, they are drawn as they are written."""

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from study.analysis.figures.style import Drawn, use_style
from study.analysis.step import save
from study.analysis.words import number


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
        words: group.count("<use ") for words, group in re.findall(r"(?s)<!-- (.*?) -->(.*?)(?:<g id=|</svg>)", picture)
    }
    assert (drawn_as[name], drawn_as[title]) == (len(name), len(title))  # a shape for each sign: no formula ate one
    assert [words for words in drawn_as if "$" in words] == [title, name]  # no number of an axis is a formula either


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.21e-5, "0.0000421"), (-9.996e-5, "-0.0001"), (0.00123, "0.00123"), (9.999, "10.0"), (0.0, "0"),
     (2e-8, "2e-08")],
)  # fmt: skip
def test_a_short_time_is_a_number_without_an_exponent(value: float, text: str) -> None:
    assert number(value) == text
