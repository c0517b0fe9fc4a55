"""Names of groups, numbers below each other, and the words of one caveat each where they depend on its values."""

import pytest

from study.analysis.report.notes import _said
from study.analysis.stats import findings
from study.analysis.wording.caveats import caveat_sentence
from study.analysis.wording.consequences import ranked
from study.analysis.words import group_names, place_words, short, three_digits
from tests.unit.analysis.planted import setting


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


def test_no_caveat_says_its_effect_twice() -> None:
    for caveat in (findings.SeveralStarts(starts=2), findings.WaitsForData(device="cuda", batch_sizes=[64])):
        (warned,) = ranked([caveat])
        assert warned.effect.split(";")[0].rstrip(".") not in " ".join(warned.what)


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


def test_a_sentence_has_two_digits_and_a_ratio_near_one_has_three() -> None:
    values = (2.44, 26.04, 0.733, 123.0, 9.97, 0.00021, 1.05, 1.2)
    assert [short(value) for value in values] == ["2.4", "26", "0.73", "120", "10", "0.00021", "1.05", "1.2"]
    assert [short(value, like=1.05) for value in (0.96, 1.14)] == ["0.96", "1.14"]
