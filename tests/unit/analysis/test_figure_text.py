"""The words in a figure: whatever a machine or a class is called, they are drawn as they are written."""

import re
from pathlib import Path

import pytest

from study.analysis.figures import roofline
from study.analysis.figures.files import use_style
from study.analysis.step import save
from study.analysis.words import number
from study.artifacts.machine import Ceiling, Ceilings

CEILINGS = Ceilings(
    device="cuda", precision="fp32", threads=1, matmul_fp32_precision="none", convolution_fp32_precision="tf32",
    product_arithmetic="tf32", product_side=8192, copy_bytes=2**30,
    product_flop_per_second=Ceiling(best=4e14, samples=[4e14], calls_per_sample=1),
    copy_bytes_per_second=Ceiling(best=4e12, samples=[4e12], calls_per_sample=1),
)  # fmt: skip


@pytest.mark.parametrize("name", ["GPU $\\frac{$", "GPU $5090$"])
def test_a_name_with_dollar_signs_is_drawn_with_them(name: str, tmp_path: Path) -> None:
    use_style()
    drawn = roofline.draw([(name, 10.0, 1e13)], CEILINGS, name)
    assert drawn is not None
    save({"roofline": drawn}, tmp_path / "figures")
    picture = (tmp_path / "figures" / "roofline.svg").read_text(encoding="utf-8")
    drawn_as = {
        words: group.count("<use ") for words, group in re.findall(r"(?s)<!-- (.*?) -->(.*?)(?:<g id=|</svg>)", picture)
    }
    title = f"{name}, fp32 computed as TF32"
    assert (drawn_as[name], drawn_as[title]) == (len(name), len(title))  # a shape for each sign: no formula ate one
    assert [words for words in drawn_as if "$" in words] == [title, name]  # no number of an axis is a formula either


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.21e-5, "0.0000421"), (-9.996e-5, "-0.0001"), (0.00123, "0.00123"), (9.999, "10.0"), (0.0, "0"),
     (2e-8, "2e-08")],
)  # fmt: skip
def test_a_short_time_is_a_number_without_an_exponent(value: float, text: str) -> None:
    assert number(value) == text
