"""A user's own claims, from the study's file to the word of the row: planted times in place of
runs."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from study.analysis.answers.claim import MOST_WORDS, ClaimRow
from study.analysis.answers.compared import Claimed, Quantity, told_of
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
    ("claim", "noise", "word", "note", "measured", "over"),
    [
        ({"ratio": 2, **PAIR}, 1, "same here", "", "2.0 times (95%: 1.9 to 2.1)", "1.00 (90%: 0.97 to 1.03)"),
        ({"ratio": 3, **PAIR}, 1, "less here", "", "2.0 times (95%: 1.9 to 2.1)", "0.67 (90%: 0.65 to 0.69)"),
        ({"ratio": 1.5, **PAIR}, 1, "more here", "", "2.0 times (95%: 1.9 to 2.1)", "1.3 (90%: 1.3 to 1.4)"),
        ({"ratio": 1.5, **PAIR, "sense": "at least"}, 1, "same here", "", "2.0 times (95%: 1.9 to 2.1)",
         "1.3 (90%: 1.3 to 1.4)"),
        ({"ratio": 1.5, **PAIR, "sense": "up to"}, 1, "more here", "", "at most 2.0 times (95%: 1.9 to 2.1)",
         "1.3 (90%: 1.3 to 1.4)"),
        ({"ratio": 1.7, "to": 2.1, **PAIR}, 1, "same here", "", "2.0 times (95%: 1.9 to 2.1)",
         "1.00 (90%: 1.00 to 1.00)"),
        ({"ratio": 2.1, **PAIR}, 3, "cannot tell", "about 14 blocks would tell", "2.0 times (95%: 1.8 to 2.3)",
         "0.95 (90%: 0.86 to 1.05)"),
        ({"ratio": 1.5, **PAIR}, 15, "cannot tell", "too noisy a machine", "2.0 times (95%: 1.1 to 3.7)",
         "1.3 (90%: 0.82 to 2.2)"),
        ({"ratio": 1, **PAIR}, 15, "more here", "one run there may be that far off by chance",
         "2.0 times (95%: 1.1 to 3.7)", "2.0 (90%: 1.2 to 3.3)"),
        ({"best": {SIZE: 8}, **AT}, 1, "same here", "",
         "8 takes 5.0 s and 16 takes 8.0 s: 1.6 times as long (95%: 1.5 to 1.7)", ""),
        ({"best": {SIZE: 16}, **AT}, 1, "not here", "",
         "16 takes 8.0 s and 8 takes 5.0 s: 1.6 times as long (95%: 1.5 to 1.7)", ""),
        ({"rank": [{SIZE: 8}, {SIZE: 16}, {SIZE: 4}], **AT}, 1, "same here", "",
         "16 over 8 1.6 (95%: 1.5 to 1.7); 4 over 16 1.2 (95%: 1.2 to 1.3)", ""),
        ({"rank": [{SIZE: 16}, {SIZE: 8}], **AT}, 1, "not here", "", "8 over 16 0.62 (95%: 0.6 to 0.65)", ""),
        ({"shares": [{"percent": 48, "to": 65}], "of": {SIZE: 8}, **AT}, 1, "same here", "", "50% to 62% of its speed",
         ""),
        ({"shares": [{"setting": {SIZE: 4}, "percent": 80}, {"setting": {SIZE: 16}, "percent": 62}], "of": {SIZE: 8},
          **AT}, 1, "less here", "", "50% to 62%. 4: 50% (95%: 48 to 52), claimed 80%", ""),
        ({"shares": [{"percent": 48, "to": 65}], "of": {SIZE: 8}, **AT}, 15, "cannot tell", "too noisy a machine",
         "50% to 62% of its speed", ""),
        ({"seconds": 5, "at": {LOOP: "torch", SIZE: 8}}, 1, "same here", "", "5.0 s (95%: 4.9 to 5.1)",
         "1.00 (90%: 0.98 to 1.02)"),
        ({"seconds": 7, "at": {LOOP: "torch", SIZE: 8}}, 1, "less here", "", "5.0 s (95%: 4.9 to 5.1)",
         "0.72 (90%: 0.7 to 0.73)"),
        ({"seconds": 7, "at": {LOOP: "torch", SIZE: 8}}, 15, "cannot tell", "less here, but not shown to be by 10%",
         "5.1 s (95%: 3.6 to 7.3)", "0.73 (90%: 0.55 to 0.98)"),
        ({"images_per_second": 200, "at": {LOOP: "torch", SIZE: 8}}, 1, "same here", "",
         "200 images/s (95%: 200 to 210)", "1.00 (90%: 0.98 to 1.02)"),
        ({"accuracy": 0.9, "at": {LOOP: "torch", SIZE: 8}}, 1, "same here", "", "90.0% (95%: 89.7 to 90.3)",
         "+0.0 (90%: -0.2 to +0.2)"),
        ({"accuracy": 0.8, "at": {LOOP: "torch", SIZE: 8}}, 1, "more here", "", "90.0% (95%: 89.7 to 90.3)",
         "+10.0 (90%: +9.8 to +10.2)"),
        ({"accuracy": 0.9, "at": {LOOP: "torch", SIZE: 8}}, 0, "cannot tell", "", "90.0% (no interval)", "+0.0"),
    ],
)  # fmt: skip
def test_each_kind_of_claim_is_judged_by_ours_over_theirs_and_one_margin_both_ways(
    claim: dict[str, Any],
    noise: float,
    word: str,
    note: str,
    measured: str,
    over: str,
    tmp_path: Path,
) -> None:
    (row,) = rows_of(tmp_path, claim, frame_of(TIMES, noise))
    assert (row.word, row.note, row.measured, row.quotient) == (word, note, measured, over)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (1.82, 2.19, "same here"),
        (1.81, 2.19, "cannot tell"),
        (2.21, 9.0, "more here"),
        (0.5, 1.81, "less here"),
        (0.0, 1.0, "less here"),
        (1.0, 4.0, "cannot tell"),
        (None, None, "cannot tell"),
    ],
)
def test_an_interval_decides_as_the_guide_says(
    low: float | None, high: float | None, word: str
) -> None:
    here = Estimate(value=2, low=low, high=high)
    assert Claimed(2, 2, 0.1, ratio=True).word(Quantity(here, here, here)) == word


def test_no_gain_never_counts_as_a_gain() -> None:
    near = Quantity(*[Estimate(value=1, low=0.97, high=1.03)] * 3)
    assert Claimed(1, 1, 0.05, ratio=True).word(near) == "same here"
    assert Claimed(1.08, 1.08, 0.1, ratio=True).word(near) == "less here"
    assert Claimed(1.08, 1.08, 0.1).word(near) == "cannot tell"


def test_only_a_claim_of_this_machine_is_contradicted_and_only_beyond_what_its_runs_may_be_off(
    tmp_path: Path,
) -> None:
    words = []
    for ratio, noise in ((3, 1), (2.4, 10), (3, 10)):
        source = {"title": "t", "same_machine": True, "noise_percent": noise}
        claim = {"ratio": ratio, **PAIR, "source": source}
        (row,) = rows_of(tmp_path, claim, frame_of(TIMES))
        words.append((row.word, row.note))
    assert words == [
        ("contradicted", "less here"),
        ("less here", "one run there may be that far off by chance"),
        ("contradicted", "less here"),
    ]


def test_up_to_is_of_the_best_of_several_by_bounds_that_hold_for_all(tmp_path: Path) -> None:
    claim = {"ratio": 2.1, "slower": {SIZE: 4}, "faster": {SIZE: 8}}
    alone = rows_of(tmp_path, claim | {"at": {LOOP: "torch"}}, frame_of(BOTH, 2))[0]
    (most,) = rows_of(tmp_path, claim | {"sense": "up to"}, frame_of(BOTH, 2))
    assert most.measured.startswith("at most 2.0 times")
    assert most.over and alone.over and alone.over.low and most.over.low
    assert most.over.low < alone.over.low


def test_the_margin_of_a_small_gain_is_half_the_way_to_none(tmp_path: Path) -> None:
    margins = [
        rows_of(tmp_path, claim | PAIR, frame_of(TIMES))[0].within
        for claim in ({"ratio": 1.03}, {"ratio": 2}, {"ratio": 1})
    ]
    assert margins == pytest.approx([1.03**0.5 - 1, 0.1, 0.05])


def test_another_job_has_no_word(tmp_path: Path) -> None:
    (row,) = rows_of(
        tmp_path, {"ratio": 2, **PAIR, "differs": ["fp16 there", "no loader"]}, frame_of(TIMES)
    )
    assert (row.word, row.grade) == ("another job", "C")


def test_a_claim_about_steady_steps_is_told_by_them_and_not_by_a_time_full_of_start_up(
    tmp_path: Path,
) -> None:
    frame = frame_of({("torch", 4): 20.0, ("torch", 8): 15.0, ("torch", 16): 30.0})
    start = 10 * frame["fit_seconds"] / frame.groupby(SIZE)["fit_seconds"].transform("mean")
    frame = frame.assign(warm_up_extra_seconds=start, steady_seconds=frame["fit_seconds"] - start)
    unsaid, steady, whole = (
        rows_of(tmp_path, {"ratio": 2, **PAIR} | clock, frame)[0]
        for clock in ({}, {"clock": "steady"}, {"clock": "whole"})
    )
    assert (unsaid.word, unsaid.better) == (
        "cannot tell",
        "start-up is 57% of this time. Without it 2.0 times (95%: 1.9 to 2.1): same here",
    )
    assert unsaid.note == "start-up is 57% of this time: 2.0 in steady steps would show as 1.3"
    assert (steady.word, whole.word) == ("same here", "less here")


def test_a_claim_measured_in_two_ways_has_two_rows_with_their_places(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, {"best": {SIZE: 8}}, frame_of(BOTH))
    assert [(row.word, row.measured) for row in rows] == [
        (
            "same here",
            "16 takes 1.01 times as long as 8 (95%: 0.96 to 1.06) with fastai",
        ),
        ("same here", "16 takes 1.6 times as long as 8 (95%: 1.5 to 1.7) with the PyTorch loop"),
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


def test_shares_of_several_settings_have_bounds_for_all_at_once_and_one_that_may_be_all_of_it_cannot_be_told(
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
    assert row.word == "cannot tell"


def test_no_digits_contradict_the_word_beside_them(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, {"ratio": 2, **PAIR}, frame_of(TIMES))
    for value, low, high, told in (
        (0.943, 0.938, 0.948, "0.94 (90%: 0.94 to 0.95)"),
        (0.904, 0.9085, 1.099, "0.90 (90%: 0.908 to 1.099)"),
        (0.927, 0.924, 0.929, "0.93 (90%: 0.92 to 0.93)"),
    ):
        over = Estimate(value=value, low=low, high=high)
        assert row.model_copy(update={"over": over}).quotient == told
    narrow = Estimate(value=2.478, low=2.461, high=2.496)
    assert told_of(narrow, " times") == "2.48 times (95%: 2.46 to 2.50)"
    assert (
        told_of(Estimate(value=104.2, low=99.6, high=109), "%", decimals=0)
        == "104% (95%: 100 to 109)"
    )


def test_what_was_not_measured_cannot_be_told_and_what_the_start_left_out_says_so(
    tmp_path: Path,
) -> None:
    claim = {"seconds": 5, "at": {LOOP: "fastai", SIZE: 8}}
    (row,) = rows_of(tmp_path, claim, frame_of(TIMES))
    assert (row.word, row.here) == ("cannot tell", None)
    study = study_of(tmp_path, claim)
    less = study.model_copy(update={"factors": study.factors | {LOOP: ["torch"]}})
    (row,) = analysed(less, frame_of(TIMES)).claims
    assert row.measured == "Not measured: this start left out fastai."


def test_a_study_at_its_reduced_size_judges_no_time(tmp_path: Path) -> None:
    study = study_of(tmp_path, {"seconds": 5, "at": {LOOP: "torch", SIZE: 8}})
    (row,) = analysed(
        study.model_copy(update={"full": {"training.epochs": 4}}), frame_of(TIMES)
    ).claims
    assert row.word == "cannot tell"
    assert row.measured.endswith("at the reduced size, which does less work")
    assert row.source.endswith("Here: the reduced size.")


def test_two_ways_are_compared_across_their_groups(tmp_path: Path) -> None:
    claim = {"ratio": 2.4, "slower": {LOOP: "fastai"}, "faster": {LOOP: "torch"}, "at": {SIZE: 8}}
    (row,) = rows_of(tmp_path, claim, frame_of(BOTH))
    assert (row.word, row.measured) == ("same here", "2.4 times (95%: 2.3 to 2.5)")
    (mark,) = row.marks
    assert (mark.group, mark.level, round(mark.seconds, 1)) == ("CPU, PyTorch loop", "8", 5.0)
    (row,) = rows_of(tmp_path, {"best": {LOOP: "torch"}, "at": {SIZE: 8}}, frame_of(BOTH))
    assert row.word == "same here"
