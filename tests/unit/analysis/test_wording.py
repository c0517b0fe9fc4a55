"""What the pages of the examples say: one treatment of each quantity, and sentences that a first reader understands."""

import functools
import re
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from study.analysis.about.notes import _said
from study.analysis.analysis import read_analysis
from study.analysis.report.step import render
from study.analysis.stats import findings
from study.analysis.stats.findings import Contrast
from study.analysis.stats.usable import Estimate
from study.analysis.wording.cards import Card, cards
from study.analysis.wording.caveats import caveat_sentence
from study.analysis.wording.consequences import ranked
from study.analysis.wording.qualified import accuracy_sentence, far_sentence
from study.analysis.words import group_names, place_words, three_digits
from tests.conftest import ROOT
from tests.examples import results_of
from tests.unit.analysis.planted import setting
from tests.unit.analysis.test_golden_page import fastest

METHOD = ROOT / "study" / "analysis" / "report" / "templates" / "method.html.j2"
EXAMPLE = results_of("example-h200")


@functools.cache
def told(example: str, *studies: str) -> str:
    """The words of an example's page as its tables give it now, each part of the page a line."""
    with TemporaryDirectory() as folder:
        render(list(studies), results_of(example), Path(folder) / "report.html")
        page = (Path(folder) / "report.html").read_text(encoding="utf-8")
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
    parts = re.split(r"</(?:p|li|tr|h\d|summary|caption|span|dd|dt|figcaption)>", page)
    return "\n".join(" ".join(unescape(re.sub(r"<[^>]+>", " ", part)).split()) for part in parts)


def test_a_ratio_without_an_interval_on_its_card_has_none_in_the_table() -> None:
    """Adjusted for the machine it had one, of two pairs."""
    page = told("example-h200", "batch-size", "speedup")
    table = page.partition("Ratios of times, paired within blocks at ")[2] or page.partition("Ratios in numbers")[2]
    table = table.partition("Caveats")[0]
    assert "45.3 over 6.35 7.14 none 3072 each" in table
    assert "adjusted" not in table


def test_the_card_of_a_ratio_says_what_its_numbers_are_and_why_there_is_no_interval() -> None:
    analysis = read_analysis(EXAMPLE / "speedup" / "fit.json")
    answers = [answer for answer in analysis.answer if isinstance(answer, Contrast)]
    numbers = (
        "7.14 times with a loader (45.3 s over 6.35 s) and 17.5 times with the images on the device (38.0 s over "
        "2.18 s), no interval: "
    )
    for unknown, why in (("few_runs", "fewer than three clean runs."), ("outside_runs", "a mean is not determined.")):
        levels = [level.model_copy(update={"undetermined": unknown}) for level in analysis.groups[0].levels]
        (card,) = cards(answers, [analysis.groups[0].model_copy(update={"levels": levels})])
        assert card.text == numbers + why


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


def test_the_card_of_the_best_combination_says_how_many_tie_with_it_and_what_its_clock_leaves_out() -> None:
    analysis = read_analysis(results_of("example-switches") / "switches-gpu" / "fit.json")
    best, fastest = cards(analysis.answer, analysis.groups, 0.02, decoded=True)
    assert best.heading == "Best combination"
    assert "3 other combinations may be as fast: the gain is shown, not which one is the best. Its images" in best.text
    assert "decoded" not in cards(analysis.answer, analysis.groups, 0.02)[0].text
    assert fastest.answer.endswith("(or 3 others)")
    assert "3 others may be as fast" in fastest.text
    assert (
        "The 3 others that may be as fast are 3.7 to 4.9 points less accurate than cuda graph + fused." in fastest.text
    )
    (other,) = (answer for answer in analysis.answer if isinstance(answer, findings.Fastest))
    assert all(name in fastest.more for name in other.tied if name not in other.left_out)


def test_what_a_card_folds_changes_no_decision() -> None:
    """Which settings lack accuracy beyond the limit, or did not learn, stays open; whatever is shorter than its fold,
    too."""
    analysis = read_analysis(results_of("example-ways") / "ways" / "fit.json")
    found = {card.heading: card for card in cards(analysis.answer, analysis.groups, 0.02)}
    assert list(found)[1:] == ["Use, fastai", "Use, torch", "Use, torch, channels_last, cuda graph, fused, device"]
    assert found["Use, fastai"].more == (
        "16 is slower. 64 is 1.4 points less accurate than 16 (86%): within the study's limit of 2 points."
    )
    assert all("Avoid 128 and 256" in card.text for card in list(found.values())[1:])
    best, way = found["Fastest of all"], list(found.values())[3]
    assert (
        "They reach 60% and 51%. 64 is 3.0 points less accurate than 16 (88%): more than the study's limit" in way.text
    )
    assert way.text.endswith("64 is the fastest without 1 far run; with it the time is 3.11 s.")
    assert best.answer.endswith("batch size 64 (or 16 and 32)")
    assert "The way is shown, its batch size is not." in best.text
    short = fastest_of(slower=["128"], unfair={})
    assert (short.more, short.text.endswith("128 is slower.")) == ("", True)


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


def fastest_of(**changes: Any) -> Card:
    """The card of a batch size alone on its device."""
    (found,) = cards([fastest(**changes)])
    return found


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
    assert "64 is 1.4 points less accurate than 16 (86%)" in told("example-ways", "ways")


def test_that_a_gain_is_also_work_off_the_clock_comes_first_among_the_caveats() -> None:
    caveats = told("example-switches", "switches-gpu").partition("Caveats, most important first")[2].strip()
    assert caveats.startswith("With loader.kind: device the images are decoded before the clock starts")


def test_software_that_differs_is_told_without_what_is_the_same() -> None:
    caveat = findings.MixedSoftware(software=["Python 3.12.3, torch 2.11.0, commit 9bf", "Python 3.12.3, torch 2.11.0"])
    assert caveat_sentence(caveat) == "The runs used different software: commit 9bf against none."


def test_a_record_that_does_not_fit_is_not_counted() -> None:
    caveat = findings.RefusedRecords(files=["a.json"], reason="key")
    assert caveat_sentence(caveat).startswith("This record does not fit and is not counted: a.json (key).")


def test_no_caveat_says_its_effect_twice() -> None:
    starts = findings.SeveralStarts(starts=2)
    waits = findings.WaitsForData(device="cuda", batch_sizes=[64])
    for caveat in (starts, waits):
        (warned,) = ranked([caveat])
        assert warned.effect.split(";")[0].rstrip(".") not in " ".join(warned.what)
    assert caveat_sentence(starts) == "The runs come from 2 starts of the pipeline."
    assert "validation apart" in caveat_sentence(waits)


def test_a_change_that_is_rounded_to_nothing_has_no_sign() -> None:
    page = told("example-switches", "switches-gpu")
    assert "accuracy unchanged, memory +12%" in page
    assert not re.search(r"[-+]0(\.0)?(%| points)", page)


def test_the_number_of_caveats_is_that_of_the_list() -> None:
    page = told("example-h200", "batch-size", "speedup")
    assert "10 caveats" in page
    assert "6 caveats" in page


def test_a_loop_that_is_a_factor_is_named_with_all_its_levels() -> None:
    assert "resnet18, fastai and torch loop" in told("example-h200", "batch-size", "speedup")


def test_a_network_that_is_not_there_is_told_in_plain_words() -> None:
    said = _said("ImageNet weights are not available: [Errno -2] Name or service not known")
    assert said == "ImageNet weights are not available: the server's name was not found, as without a network"


def test_the_cause_of_no_answer_has_its_setting_as_its_subject() -> None:
    page = told("example-h200", "batch-size", "speedup")
    assert "it cannot be said which is the fastest: loader device has fewer than three clean runs." in page


def test_a_chart_without_an_interval_promises_none() -> None:
    page = told("example-h200", "batch-size", "speedup")
    chart = page.partition("The ratios, and the published claim")[2].partition("Ratios in numbers")[0]
    assert "ratio, no interval" in chart
    assert "95%" not in chart


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


def test_the_settings_that_wait_for_data_are_named() -> None:
    assert "On the GPU these wait so long: the 16 settings without device." in told("example-switches", "switches-gpu")
    assert "On the GPU with fastai these wait so long: 64, 128 and 256." in told(
        "example-h200", "batch-size", "speedup"
    )
