from pathlib import Path

import pytest
from docutils.core import publish_parts  # type: ignore[import-untyped]

from study.host.plan.captions import Figures, as_rst


@pytest.mark.parametrize(
    "text",
    [
        "Time, T0 + A/b: *not* **bold**, `code`_, |substituted|, a_ link_ and http://a.example",
        ".. raw:: html <script>alert(1)</script>",
        "- no list",
        "1. no list",
        "back\\slash __anonymous__",
    ],
)
def test_a_caption_is_shown_as_it_is(text: str) -> None:
    parts = publish_parts(as_rst(text), writer_name="html", settings_overrides={"report_level": 1, "halt_level": 1})
    shown = parts["body"].replace("&lt;", "<").replace("&gt;", ">").strip()
    assert shown == f"<p>{text}</p>"


def test_a_figure_that_is_not_listed_yet_has_its_name(tmp_path: Path) -> None:
    figures = Figures(tmp_path / "figures")
    assert (figures.title("law"), figures.caption("law"), repr(figures)) == ("law", "law", "figures/index.json")


@pytest.mark.parametrize("text", ["[" * 100_000, "{}", "[1]", '[{"name": "law"}]', "\0"])
def test_a_list_that_is_damaged_lists_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text)
    assert Figures(tmp_path).title("law") == "law"


def test_a_listed_figure_has_its_title_and_caption(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('[{"name": "law", "title": "A law", "caption": "a  b", "alt": ""}]')
    figures = Figures(tmp_path)
    assert (figures.title("law"), figures.caption("law")) == ("A law", "a b")
