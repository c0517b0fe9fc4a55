"""A user's own claims, from the study's file to the word of the row: planted times in place of
runs."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from study.analysis.answers.claim import MOST_WORDS, ClaimRow
from study.analysis.answers.compared import against, told_of, word_of
from study.analysis.stats.estimate import Estimate
from study.config.load import read_selection, read_study
from study.config.study import Study
from tests.conftest import study_values
from tests.timings import analysed, as_timings

SIZE, LOOP = "training.batch_size", "training.loop"
NOISE = (1.0, 1.02, 0.97, 1.03, 0.99)
SOURCE = {
    "title": "A report",
    "place": "table 2",
    "kind": "thesis",
    "date": "2025-04",
    "hardware": "a laptop",
    "runs": "one run each",
    "differs": "It trained on photographs.",
}


def frame_of(
    times: dict[tuple[str, int], float], noise: float = 1, blocks: int = 5, **columns: Any
) -> pd.DataFrame:
    """Runs on a CPU: seconds by loop and batch size, which vary from block to block."""
    rows = [
        {
            "run": f"{loop}-{size}-r{block}", "block": block, LOOP: loop, SIZE: size, "session": 1,
            "fit_seconds": seconds * NOISE[(block * (place + 1)) % 5] ** noise,
            "images_per_second": 1000 / seconds * NOISE[(block * (place + 1)) % 5] ** noise,
            "accuracy": 0.9 + noise * (NOISE[(block * (place + 1)) % 5] - 1) / 10,
        } | columns
        for place, ((loop, size), seconds) in enumerate(times.items())
        for block in range(blocks)
    ]  # fmt: skip
    return as_timings(rows)


def study_of(folder: Path, claims: dict[str, Any] | list[dict[str, Any]], **changes: Any) -> Study:
    """A study of two loops and three batch sizes, whose file makes this claim, or these."""
    claims = (
        claims if isinstance(claims, list) else [{"claim": "A claim", "source": SOURCE} | claims]
    )
    values = study_values(
        factors={"device": ["cpu"], LOOP: ["fastai", "torch"], SIZE: [4, 8, 16]}, replicates=5,
        claims=claims, **changes,
    )  # fmt: skip
    # JSON is YAML without aliases
    (folder / "mine.yaml").write_text(json.dumps(values), encoding="utf-8")
    return read_study("mine", [folder], read_selection({"studies": ["mine"]}))


def rows_of(
    folder: Path, claim: dict[str, Any], frame: pd.DataFrame, **changes: Any
) -> list[ClaimRow]:
    rows = analysed(study_of(folder, claim, **changes), frame).claims
    assert all(len(row.measured.split()) <= MOST_WORDS for row in rows)
    return rows


TIMES = {("torch", 4): 10.0, ("torch", 8): 5.0, ("torch", 16): 8.0}
BOTH = TIMES | {("fastai", 4): 20.0, ("fastai", 8): 12.0, ("fastai", 16): 12.05}
AT = {"at": {LOOP: "torch"}}
PAIR = {"slower": {SIZE: 4}, "faster": {SIZE: 8}} | AT


@pytest.mark.parametrize(
    ("claim", "noise", "word", "note", "measured"),
    [
        ({"ratio": 2, **PAIR}, 1, "holds", "", "2.0 times (95%: 1.9 to 2.1)"),
        ({"ratio": 3, **PAIR}, 1, "contradicted", "less here", "2.0 times (95%: 1.9 to 2.1)"),
        ({"ratio": 1.5, **PAIR}, 1, "contradicted", "more here", "2.0 times (95%: 1.9 to 2.1)"),
        ({"ratio": 1.5, **PAIR}, 15, "not decided", "", "2.0 times (95%: 1.1 to 3.7)"),
        ({"ratio": 1, **PAIR}, 15, "contradicted", "more here", "2.0 times (95%: 1.1 to 3.7)"),
        ({"best": {SIZE: 8}, **AT}, 1, "holds", "",
         "8 takes 5.0 s and 16 takes 8.0 s: 1.6 times as long (95%: 1.5 to 1.7)"),
        ({"best": {SIZE: 16}, **AT}, 1, "contradicted", "",
         "16 takes 8.0 s and 8 takes 5.0 s: 1.6 times as long (95%: 1.5 to 1.7)"),
        ({"best": {SIZE: 8}, **AT}, 15, "not decided", "",
         "8 takes 5.1 s and 16 takes 8.2 s: 1.6 times as long (95%: 0.76 to 3.4)"),
        ({"shares": [{"percent": 48, "to": 65}], "of": {SIZE: 8}, **AT}, 1, "holds", "", "50% to 62% of its speed"),
        ({"shares": [{"setting": {SIZE: 4}, "percent": 80}, {"setting": {SIZE: 16}, "percent": 62}], "of": {SIZE: 8},
          **AT}, 1, "contradicted", "less here", "50% to 62%. 4: 50% (95%: 48 to 52), claimed 80%"),
        ({"shares": [{"percent": 48, "to": 65}], "of": {SIZE: 8}, **AT}, 15, "not decided", "",
         "50% to 62% of its speed"),
        ({"seconds": 5, "at": {LOOP: "torch", SIZE: 8}}, 1, "holds", "", "5.0 s (95%: 4.9 to 5.1)"),
        ({"seconds": 7, "at": {LOOP: "torch", SIZE: 8}}, 1, "contradicted", "less here", "5.0 s (95%: 4.9 to 5.1)"),
        ({"seconds": 7, "at": {LOOP: "torch", SIZE: 8}}, 15, "not decided", "", "5.1 s (95%: 3.6 to 7.3)"),
        ({"images_per_second": 200, "at": {LOOP: "torch", SIZE: 8}}, 1, "holds", "",
         "200 images/s (95%: 200 to 210)"),
        ({"images_per_second": 100, "at": {LOOP: "torch", SIZE: 8}}, 1, "contradicted", "more here",
         "200 images/s (95%: 200 to 210)"),
        ({"accuracy": 0.9, "at": {LOOP: "torch", SIZE: 8}}, 1, "holds", "", "90.0% (95%: 89.7 to 90.3)"),
        ({"accuracy": 0.8, "at": {LOOP: "torch", SIZE: 8}}, 1, "contradicted", "more here",
         "90.0% (95%: 89.7 to 90.3)"),
        ({"accuracy": 0.9, "at": {LOOP: "torch", SIZE: 8}}, 0, "not decided", "", "90.0% (no interval)"),
    ],
)  # fmt: skip
def test_each_kind_of_claim_is_judged_by_the_interval_of_the_same_quantity(
    claim: dict[str, Any], noise: float, word: str, note: str, measured: str, tmp_path: Path
) -> None:
    (row,) = rows_of(tmp_path, claim, frame_of(TIMES, noise))
    assert (row.word, row.note, row.measured) == (word, note, measured)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (1.96, 2.04, "holds"),
        (1.7, 2.5, "holds"),
        (1.6, 2.5, "not decided"),
        (2.05, 2.6, "not decided"),
        (2.2, 9.0, "contradicted"),
        (None, None, "not decided"),
    ],
)
def test_an_interval_decides_as_the_guide_says(
    low: float | None, high: float | None, word: str
) -> None:
    assert word_of(2, 2, Estimate(value=2, low=low, high=high), 0.05) == word


@pytest.mark.parametrize(("value", "word"), [(1.5, "holds"), (1.9, "not decided")])
def test_a_claimed_range_holds_what_was_measured_and_not_an_interval_that_reaches_into_it(
    value: float, word: str
) -> None:
    assert word_of(1.3, 1.8, Estimate(value=value, low=value / 1.2, high=value * 1.2), 0.05) == word


def test_no_gain_holds_only_within_the_margin_and_a_gain_only_without_1() -> None:
    wide, near = Estimate(value=1, low=0.9, high=1.1), Estimate(value=1, low=0.97, high=1.03)
    assert [word_of(1, 1, one, 0.05, ratio=True) for one in (wide, near)] == [
        "not decided",
        "holds",
    ]
    assert word_of(1.08, 1.08, wide, 0.05, ratio=True) == "not decided"


def test_a_claim_measured_in_two_ways_has_two_rows_with_their_places(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, {"best": {SIZE: 8}}, frame_of(BOTH))
    assert [(row.word, row.measured) for row in rows] == [
        (
            "holds",
            "8 takes 12.0 s and 16 takes 12.1 s: 1.01 times as long, equal within 5% with fastai",
        ),
        ("holds", "16 takes 1.6 times as long as 8 (95%: 1.5 to 1.7) with the PyTorch loop"),
    ]


KINDS: list[dict[str, Any]] = [
    {"ratio": 1.7, "slower": {SIZE: 4}, "faster": {SIZE: 8}},
    {"best": {SIZE: 8}},
    {"seconds": 5, "at": {SIZE: 8}},
    {"images_per_second": 200, "at": {SIZE: 8}},
    {"accuracy": 0.9, "at": {SIZE: 8}},
]


@pytest.mark.parametrize("claim", KINDS)
def test_the_bounds_of_a_claim_about_several_settings_hold_for_all_of_them_at_once(
    claim: dict[str, Any], tmp_path: Path
) -> None:
    several = rows_of(tmp_path, claim, frame_of(BOTH))[-1].here
    alone = rows_of(tmp_path, claim | {"at": claim.get("at", {}) | AT["at"]}, frame_of(BOTH))[
        -1
    ].here
    assert several
    assert alone
    assert several.value == alone.value
    assert several.low < alone.low < alone.high < several.high  # type: ignore[operator]


def test_shares_of_several_settings_have_bounds_for_all_at_once_and_one_that_may_be_all_of_it_is_not_decided(
    tmp_path: Path,
) -> None:
    of: dict[str, Any] = {"of": {SIZE: 8}}
    alone = {"shares": [{"setting": {SIZE: 4}, "percent": 40}]} | of
    both = {"shares": [*alone["shares"], {"setting": {SIZE: 16}, "percent": 90}]} | of
    said = [
        rows_of(tmp_path, claim | AT, frame_of(TIMES, 2))[0].measured for claim in (alone, both)
    ]
    assert [text.partition("4: ")[2].partition(",")[0] for text in said] == [
        "50% (95%: 46 to 54)", "50% (95%: 45 to 55)"
    ]  # fmt: skip
    near = {("torch", 4): 10.8, ("torch", 8): 10.0, ("torch", 16): 30.0}
    (row,) = rows_of(
        tmp_path, {"shares": [{"setting": {SIZE: 4}, "percent": 90}]} | of | AT, frame_of(near, 5)
    )
    assert row.word == "not decided"


def test_no_digits_contradict_the_word_beside_them() -> None:
    here, claimed = Estimate(value=9.7, low=9.30, high=9.966), 9.97
    word = word_of(claimed, claimed, here, 0.05, ratio=True)
    assert word == "not decided"
    assert told_of(here, " times", against(word, claimed)) == "9.7 times (95%: 9.3 to 9.966)"
    rate = Estimate(value=198, low=191, high=205.9)
    assert told_of(rate, " images/s", (210,)) == "200 images/s (95%: 190 to 206)"
    near = Estimate(value=0.904, low=0.901, high=0.907)
    assert told_of(near, "", (0.9,)) == "0.904 (95%: 0.901 to 0.91)"
    narrow = Estimate(value=2.478, low=2.461, high=2.496)
    assert told_of(narrow, " times", (2.63,)) == "2.48 times (95%: 2.46 to 2.50)"
    points = Estimate(value=90.04, low=90.01, high=90.1)
    assert told_of(points, "%", (90.0,), decimals=1) == "90.04% (95%: 90.01 to 90.1)"
    assert (
        told_of(Estimate(value=104.2, low=99.6, high=109), "%", (), decimals=0)
        == "104% (95%: 100 to 109)"
    )


def test_what_was_not_measured_is_not_decided_and_what_the_start_left_out_says_so(
    tmp_path: Path,
) -> None:
    claim = {"seconds": 5, "at": {LOOP: "fastai", SIZE: 8}}
    (row,) = rows_of(tmp_path, claim, frame_of(TIMES))
    assert (row.word, row.here) == ("not decided", None)
    study = study_of(tmp_path, claim)
    less = study.model_copy(update={"factors": study.factors | {LOOP: ["torch"]}})
    (row,) = analysed(less, frame_of(TIMES)).claims
    assert row.measured == "Not measured: this start left out fastai."


def test_a_study_at_its_reduced_size_judges_no_time(tmp_path: Path) -> None:
    study = study_of(tmp_path, {"seconds": 5, "at": {LOOP: "torch", SIZE: 8}})
    (row,) = analysed(
        study.model_copy(update={"full": {"training.epochs": 4}}), frame_of(TIMES)
    ).claims
    assert row.word == "not decided"
    assert row.measured.endswith("at the reduced size, which does less work")
    assert row.source.endswith("Here: the reduced size.")


def test_two_ways_are_compared_across_their_groups(tmp_path: Path) -> None:
    claim = {"ratio": 2.4, "slower": {LOOP: "fastai"}, "faster": {LOOP: "torch"}, "at": {SIZE: 8}}
    (row,) = rows_of(tmp_path, claim, frame_of(BOTH))
    assert (row.word, row.measured) == ("holds", "2.4 times (95%: 2.3 to 2.5)")
    (mark,) = row.marks
    assert (mark.group, mark.level, round(mark.seconds, 1)) == ("CPU, PyTorch loop", "8", 5.0)
    (row,) = rows_of(tmp_path, {"best": {LOOP: "torch"}, "at": {SIZE: 8}}, frame_of(BOTH))
    assert row.word == "holds"
