"""The words in a figure: whatever a machine or a class is called, they are drawn as they are
written."""

import os
import re
import subprocess
import sys
from itertools import chain, combinations
from pathlib import Path

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

import study
from study.analysis.figures import batch_size_performance, utilisation
from study.analysis.figures.style import Drawn, printable, use_style
from study.analysis.figures.svg import extent
from study.analysis.step import save
from study.analysis.words import number
from study.artifacts.plan import write_plans
from study.base.files import ROOT
from tests.conftest import tiny_plan
from tests.examples import EXAMPLE
from tests.unit.analysis.test_telemetry_figure import run


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
        assert extent.__wrapped__("50%", 12, "normal") == extent("50%", 12, "normal")


@pytest.mark.parametrize("name", [12 * "many words ", 130 * "W", "NVIDIA RTX, " + 99 * "m"])
def test_no_title_and_no_name_of_a_curve_is_cut_or_lies_on_another(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size_performance, "place_words", lambda setting: name)
    figures = [study.open(EXAMPLE)["photographs"].figure("batch_size_performance")]
    found = utilisation.draw([run(f"{name} {number}", 10) for number in "ab"], "cuda")
    for figure in [*figures, *([found.figure] if found else [])]:
        figure.savefig(tmp_path / "drawn.png")
        titles = [axes._left_title for axes in figure.axes]  # type: ignore[attr-defined]
        boxes = [
            text.get_window_extent()
            for text in chain(titles, *(legend.get_texts() for legend in figure.legends))
            if text.get_text()
        ]
        assert boxes
        assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@pytest.mark.parametrize(
    ("value", "text"),
    [(4.21e-5, "0.0000421"), (-9.996e-5, "-0.0001"), (0.00123, "0.00123"), (9.999, "10.0"), (0.0, "0"),
     (2e-8, "2e-08")],
)  # fmt: skip
def test_a_short_time_is_a_number_without_an_exponent(value: float, text: str) -> None:
    assert number(value) == text
