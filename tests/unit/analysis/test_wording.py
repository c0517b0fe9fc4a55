"""Names of groups, and numbers below each other."""

import pytest

from study.analysis.answers.context import Context, place
from study.analysis.words import group_names, place_words, short, three_digits
from tests.conftest import tiny_plan
from tests.unit.analysis.planted import setting


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (["cuda"], []),
        (["cpu", "cuda"], ["CPU", "GPU"]),
        (["cuda|fastai", "cuda|torch"], ["fastai", "PyTorch loop"]),
        (["cpu|a", "cpu|b", "cuda|a", "cuda|b"], ["CPU, a", "CPU, b", "GPU, a", "GPU, b"]),
        (["cuda|a|off|off", "cuda|b|off|off", "cuda|b|on|on"], ["a", "b", "b, on, on"]),
        # What no other shares with the first is nothing, so each has its whole name.
        (["x|off|off", "x|off|on", "x|on|off"], ["x, off, off", "x, off, on", "x, on, off"]),
        (["one, with a comma", "two"], ["one, with a comma", "two"]),
        (["cuda|a, b|c", "cuda|a|b, c"], ['"a, b", c', 'a, "b, c"']),
        (["cuda|a + b", "cuda|c"], ["a + b", "c"]),
    ],
)
def test_a_group_is_named_by_what_tells_it_from_the_others(
    groups: list[str], names: list[str]
) -> None:
    keys = ("device", "loop", "kind", "precision")
    planted = [setting(**dict(zip(keys, group.split("|"), strict=False))) for group in groups]
    assert [place_words(name) for name in group_names(planted).values()] == names


def test_a_number_in_the_place_of_a_group_has_its_key_and_a_named_device_its_name() -> None:
    sizes = setting(device="cuda", size=64)
    words = ("on the GPU with batch size 64", "GPU, batch size 64")
    assert (place(sizes), place_words(sizes)) == words
    named = sizes.model_copy(update={"named": {"old card": ["device"]}})
    words = ("with old card, batch size 64", "old card, batch size 64")
    assert (place(named), place_words(named)) == words


def test_times_that_stand_below_each_other_have_as_many_digits() -> None:
    told = [three_digits(value) for value in (0.6, 0.581, 0.67, 0.9999, 4.19, 0.00012)]
    assert told == ["0.600", "0.581", "0.670", "1.00", "4.19", "0.000120"]


def test_a_sentence_has_two_digits_and_a_ratio_near_one_has_three() -> None:
    values = (2.44, 26.04, 0.733, 123.0, 9.97, 0.00021, 1.05, 1.2)
    assert [short(value) for value in values] == [
        "2.4",
        "26",
        "0.73",
        "120",
        "10",
        "0.00021",
        "1.05",
        "1.2",
    ]
    assert [short(value, like=1.05) for value in (0.96, 1.14)] == ["0.96", "1.14"]


def test_several_levels_of_a_key_that_is_a_plural_have_one_s() -> None:
    loader = {"kind": "workers"}
    study = tiny_plan(loader=loader, factors={"loader.workers": [1, 2]}, curve=None).study
    assert Context(study).settings(["1", "2"]) == "loader workers 1 and 2"
