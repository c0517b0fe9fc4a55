"""The rules of the sentences. The sentences themselves stand on the golden page and on the examples' pages."""

from typing import Any

import pytest

from study.analysis.report.notes import _said
from study.analysis.stats import findings
from study.analysis.stats.analysis import read_analysis
from study.analysis.stats.findings import Contrast
from study.analysis.stats.usable import Estimate
from study.analysis.wording.cards import cards
from study.analysis.wording.caveats import caveat_sentence
from study.analysis.wording.qualified import accuracy_sentence, far_sentence
from study.analysis.words import group_names, place_words, three_digits
from tests.conftest import ROOT
from tests.examples import results_of
from tests.unit.analysis.planted import setting

METHOD = ROOT / "study" / "analysis" / "report" / "templates" / "method.html.j2"
EXAMPLE = results_of("example-h200")


def test_the_card_of_a_ratio_says_why_there_is_no_interval() -> None:
    analysis = read_analysis(EXAMPLE / "speedup" / "fit.json")
    answers = [answer for answer in analysis.answer if isinstance(answer, Contrast)]
    for unknown, why in (("few_runs", "fewer than three clean runs."), ("outside_runs", "a mean is not determined.")):
        levels = [level.model_copy(update={"undetermined": unknown}) for level in analysis.groups[0].levels]
        (card,) = cards(answers, [analysis.groups[0].model_copy(update={"levels": levels})])
        assert card.text.endswith(f"no interval: {why}")


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (["cuda"], []),
        (["cpu", "cuda"], ["CPU", "GPU"]),
        (["cuda|fastai", "cuda|torch"], ["fastai", "torch"]),
        (["cpu|a", "cpu|b", "cuda|a", "cuda|b"], ["CPU, a", "CPU, b", "GPU, a", "GPU, b"]),
        (["cuda|a|off|off", "cuda|b|off|off", "cuda|b|on|on"], ["a", "b", "b, on, on"]),
        # What no other shares with the first is nothing, so each has its whole name.
        (["x|off|off", "x|off|on", "x|on|off"], ["x, off, off", "x, off, on", "x, on, off"]),
        (["one, with a comma", "two"], ["one, with a comma", "two"]),
        (["cuda|a, b|c", "cuda|a|b, c"], ['"a, b", c', 'a, "b, c"']),
        (["cuda|a + b", "cuda|c"], ["a + b", "c"]),
    ],
)
def test_a_group_is_named_by_what_tells_it_from_the_others(groups: list[str], names: list[str]) -> None:
    keys = ("device", "loop", "kind", "precision")
    planted = [setting(**dict(zip(keys, group.split("|"), strict=False))) for group in groups]
    assert [place_words(name) for name in group_names(planted).values()] == names


def test_an_outlier_is_told_only_where_the_setting_is_not_the_fastest_with_it() -> None:
    group = read_analysis(results_of("example-ways") / "ways" / "fit.json").groups[2]

    def told(with_far: float, **changes: Any) -> str:
        levels = [
            level.model_copy(update={"time_with_far": Estimate(value=with_far, low=None, high=None)})
            if level.label == "64"
            else level.model_copy(update=changes)
            for level in group.levels
        ]
        return far_sentence(group.model_copy(update={"levels": levels}), "64")

    assert told(3.11)
    assert told(2.5) == ""  # 32 takes 2.63 s
    assert told(3.11, time=Estimate(value=4.0, low=None, high=None)) == ""


def test_the_card_says_how_far_the_chosen_settings_accuracy_lies_below_the_best_and_what_limit_that_meets() -> None:
    group = read_analysis(EXAMPLE / "batch-size" / "fit.json").groups[0]  # 64 is the fastest

    def beside(accuracy: float) -> str:
        known = {"64": 0.85, "32": accuracy}
        levels = [level.model_copy(update={"accuracy": known.get(level.label)}) for level in group.levels]
        return accuracy_sentence(group.model_copy(update={"levels": levels}), "64", 0.02)

    assert beside(0.851) == beside(0.8) == ""
    assert beside(0.86) == "64 is 1.0 points less accurate than 32 (86%): within the study's limit of 2 points."
    assert beside(0.88) == (
        "64 is 3.0 points less accurate than 32 (88%): more than the study's limit of 2 points, but not by more "
        "than the noise between runs."
    )


def test_software_that_differs_is_told_without_what_is_the_same() -> None:
    caveat = findings.MixedSoftware(software=["Python 3.12.3, torch 2.11.0, commit 9bf", "Python 3.12.3, torch 2.11.0"])
    assert caveat_sentence(caveat) == "The runs used different software: commit 9bf against none."


def test_a_network_that_is_not_there_is_told_in_plain_words() -> None:
    said = _said("ImageNet weights are not available: [Errno -2] Name or service not known")
    assert said == "ImageNet weights are not available: the server's name was not found, as without a network"


def test_times_that_stand_below_each_other_have_as_many_digits() -> None:
    assert [three_digits(value) for value in (0.6, 0.581, 0.67, 0.9999, 4.19, 0.00012)] == [
        "0.600", "0.581", "0.670", "1.00", "4.19", "0.000120"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "word",
    ["launch-bound", "warm-up run", "start", "block", "reference workload", "frozen", "AICc", "roofline", "P(fastest)"],
)
def test_the_method_explains_the_words_of_the_page(word: str) -> None:
    assert f"<b>{word}</b>" in METHOD.read_text(encoding="utf-8")
