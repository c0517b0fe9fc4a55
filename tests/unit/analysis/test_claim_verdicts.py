"""What a study says of a published claim: the rules, and the sentences on them."""

from collections.abc import Sequence
from typing import Any

import pytest

from study.analysis.analysis import Analysis, read_analysis
from study.analysis.answers.group import Group, Level
from study.analysis.published.claims import Claim, claims_in
from study.analysis.published.measured import (
    ClaimVerdict,
    Evidence,
    FastestHere,
    RatioHere,
    Standing,
    evidence_of_fastest,
    evidence_of_ratios,
    verdicts,
)
from study.analysis.stats.usable import Estimate
from study.analysis.wording.claims import LONGEST, claim_headline, claim_text, claim_title, claim_words
from study.artifacts.plan import read_plan
from study.artifacts.published import all_published
from study.artifacts.setting import Setting
from study.config.load import read_selection, read_study
from study.config.study import Study
from study.host.plan.configuration import study_folders
from tests.examples import results_of
from tests.unit.analysis.planted import setting

EXAMPLE = results_of("example-h200")
CLAIMS = [claim for published in all_published() for claim in claims_in(published)]


def named(name: str) -> Study:
    """A study as its file has it, with both devices."""
    return read_study(name, study_folders(), read_selection({"studies": [name]}))


def claim_of(document: str, ratio: float | None = None) -> Claim:
    (claim,) = [claim for claim in CLAIMS if claim.document == document and claim.ratio == ratio]
    return claim


def example(name: str) -> tuple[Study, Analysis]:
    study = read_plan(EXAMPLE / name / "plan.json").study.model_copy(update={"claims_of": "gpu_blog"})
    return study, read_analysis(EXAMPLE / name / "fit.json")


def speedup(*intervals: tuple[float | None, float | None]) -> ClaimVerdict:
    """The verdict on 9.97 of the example's speed-up, whose two ratios have these intervals."""
    study, analysis = example("speedup")
    ratios = [
        ratio.model_copy(update={"ratio": Estimate(value=ratio.ratio.value, low=low, high=high)})
        for ratio, (low, high) in zip(analysis.ratios, intervals, strict=False)
    ]
    (verdict,) = verdicts([claim_of("gpu_blog", 9.97)], study, analysis.model_copy(update={"ratios": ratios}))
    return verdict


def optimum(**changes: Any) -> ClaimVerdict:
    """The verdict on 64 of the example's first group, with changes."""
    study, analysis = example("batch-size")
    group = analysis.groups[0].model_copy(update=changes)
    (verdict,) = verdicts([claim_of("gpu_blog")], study, analysis.model_copy(update={"groups": [group]}))
    return verdict


@pytest.mark.parametrize(
    ("within", "evidence"),
    [
        ([], "cannot_say"),
        ([None], "cannot_say"),
        ([None, None], "cannot_say"),
        ([True], "consistent"),
        ([True, None], "consistent"),
        ([True, True], "consistent"),
        ([False], "contradicted"),
        ([False, None], "contradicted"),
        ([False, False], "contradicted"),
        ([True, False], "mixed"),
        ([True, False, None], "mixed"),
    ],
)
def test_a_claimed_ratio_is_judged_by_the_intervals_that_tell(within: list[bool | None], evidence: Evidence) -> None:
    assert evidence_of_ratios(within) == evidence


@pytest.mark.parametrize(
    ("standings", "evidence"),
    [
        ([], "cannot_say"),
        (["undecided"], "cannot_say"),
        (["not_measured", "undecided"], "cannot_say"),
        (["alone"], "established"),
        (["alone", "alone"], "established"),
        (["alone", "undecided"], "consistent"),
        (["alone", "not_measured"], "consistent"),
        (["among"], "tied"),
        (["alone", "among"], "tied"),
        (["among", "undecided"], "tied"),
        (["slower"], "contradicted"),
        (["not_learned", "censored"], "contradicted"),
        (["slower", "undecided"], "contradicted"),
        (["alone", "slower"], "mixed"),
        (["among", "not_learned"], "mixed"),
    ],
)
def test_a_claimed_batch_size_is_judged_by_the_groups_that_tell(standings: list[Standing], evidence: Evidence) -> None:
    assert evidence_of_fastest(standings) == evidence


def test_a_ratio_in_neither_interval_is_contradicted() -> None:
    verdict = speedup((5.48, 9.13), (13.4, 22.3))
    assert verdict.evidence == "contradicted"
    assert [ratio.within for ratio in verdict.ratios] == [False, False]
    assert claim_headline(verdict) == "Contradicted: 7.14 and 17.5, not 9.97"
    assert claim_text(verdict) == (
        "7.14 times (95%: 5.48 to 9.13) with a loader; 17.5 times (13.4 to 22.3) with the images on the device. 9.97 "
        "lies in neither interval."
    )


@pytest.mark.parametrize(
    ("intervals", "headline", "sentence"),
    [
        (
            [(5.0, 9.0)],
            "Contradicted here: 7.14 times, not 9.97",
            "9.97 lies outside this interval.",
        ),
        (
            [(5.0, 10.0)],
            "Consistent with 9.97: 7.14 here",
            "9.97 lies within this interval.",
        ),
        ([(5.0, 10.0), (9.0, 30.0)], "Consistent with 9.97: 7.14 and 17.5 here", "9.97 lies in both intervals."),
        (
            [(5.0, 10.0), (13.0, 30.0)],
            "Depends: 9.97 holds in 1 of 2 cases",
            "lies in the interval with a loader alone",
        ),
        ([(None, None)], "Cannot say: 7.14, no interval", "is neither confirmed nor contradicted"),
        ([(0.157, 441.0)], "Cannot say: 7.14, no interval", "is neither confirmed nor contradicted"),
        ([], "Cannot say: not both were measured", "were not both measured at the claim's settings."),
    ],
)
def test_each_verdict_on_a_ratio_has_its_headline_and_its_sentence(
    intervals: Sequence[tuple[float | None, float | None]], headline: str, sentence: str
) -> None:
    verdict = speedup(*intervals)
    assert claim_headline(verdict) == headline
    assert sentence in claim_text(verdict)


def test_an_interval_that_is_too_wide_for_a_claim_still_tells_against_one_outside() -> None:
    assert speedup((20.0, 300.0)).evidence == "contradicted"


def test_the_examples_two_clean_runs_leave_the_ratio_open_and_its_optimum_tied() -> None:
    found = [verdict for name in ("batch-size", "speedup") for verdict in verdicts(CLAIMS, *example(name))]
    assert [(claim_title(one.claim), one.evidence) for one in found] == [
        ("Batch size 64 is the optimum", "tied"),
        ("The GPU is 9.97 times as fast as the CPU", "cannot_say"),
    ]
    assert [claim_headline(one) for one in found] == [
        "Not confirmed: 32 may be as fast",
        "Cannot say: 7.14 and 17.5, no interval",
    ]
    assert claim_text(found[0]) == (
        "With fastai and with torch 64 cannot be told from 32 (95%). What it says of the others is contradicted: they "
        "reach 65.7% to 105% of its speed, not 63.3% to 76%; 32 and 128 lie outside (95%)."
    )
    assert claim_words(found[0])[0].startswith("Not confirmed: ")  # the evidence beside it says no such thing
    assert claim_words(found[1])[0] == "7.14 and 17.5, no interval"
    assert "9.97 is neither confirmed nor contradicted" in claim_text(found[1])


@pytest.mark.parametrize(
    ("changes", "standing", "evidence", "words"),
    [
        ({"indistinguishable": ["64"]}, "alone", "established", "64 alone may be the fastest (95%)."),
        ({"indistinguishable": ["16", "32", "64"]}, "among", "tied", "64 cannot be told from 16 and 32 (95%)."),
        ({"indistinguishable": ["32"], "best": "32"}, "slower", "contradicted", "64 is slower by more than the noise"),
        ({"unfair": {"64": "not_learned"}}, "not_learned", "contradicted", "64 did not learn as others did"),
        ({"unfair": {"64": "censored"}}, "censored", "contradicted", "64 missed the target accuracy"),
        ({"best": None}, "undecided", "cannot_say", "the data do not show which is the fastest. To decide it"),
        ({"optimum": None}, "undecided", "cannot_say", "the data do not show which is the fastest"),
        ({"machine": "unclear"}, "undecided", "cannot_say", "the data do not show which is the fastest"),
        ({"levels": []}, "not_measured", "cannot_say", "64 was not measured"),
    ],
)  # fmt: skip
def test_a_claimed_batch_size_stands_where_the_group_says(
    changes: dict[str, Any], standing: Standing, evidence: Evidence, words: str
) -> None:
    verdict = optimum(**changes)
    (group,) = verdict.groups
    assert (group.standing, verdict.evidence) == (standing, evidence)
    assert words in claim_text(verdict)
    assert len(claim_headline(verdict)) <= LONGEST


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (14.3, "The others reach 69.9% of its speed, which does not contradict 63.3% to 76%."),
        (10.2, "contradicted: they reach 98.0% of its speed, not 63.3% to 76%; 32 lies outside (95%)."),
        (12.9, "The others reach 77.5% of its speed, which does not contradict 63.3% to 76%."),
    ],
)
def test_the_speed_of_the_other_sizes_is_judged_by_its_interval(seconds: float, words: str) -> None:
    levels = [level(setting(size=64), 10.0, 1.05), level(setting(size=32), seconds, 1.05)]
    assert words in claim_text(optimum(levels=levels, indistinguishable=["64"]))


def test_ratios_without_an_interval_say_so_once() -> None:
    assert claim_text(speedup((None, None), (None, None))).startswith(
        "7.14 times with a loader and 17.5 times with the images on the device, both without an interval. 9.97 is"
    )


def test_what_a_cpu_measured_says_nothing_of_a_claim_about_a_gpu() -> None:
    study, analysis = example("batch-size")
    study = study.model_copy(update={"factors": study.factors | {"device": ["cpu", "cuda"]}})
    groups = [group.model_copy(update={"setting": setting(device="cpu")}) for group in analysis.groups]
    (verdict, ratio) = verdicts(CLAIMS, study, analysis.model_copy(update={"groups": groups}))
    assert (verdict.evidence, verdict.groups) == ("cannot_say", ())
    assert claim_text(verdict) == "The claim is of the GPU, and no run was made on the GPU."
    assert claim_headline(verdict) == "Cannot say: no run on the GPU"
    assert (ratio.evidence, ratio.ratios) == ("cannot_say", ())


def test_a_study_without_a_cpu_or_of_another_document_is_silent_on_a_ratio() -> None:
    study, analysis = example("batch-size")  # on the GPU alone
    assert [verdict.claim.ratio for verdict in verdicts(CLAIMS, study, analysis)] == [None]
    other = study.model_copy(update={"published": None, "claims_of": None})
    assert verdicts(CLAIMS, other, analysis) == []


def test_the_ratio_at_the_claimed_batch_size_alone_is_compared() -> None:
    study, analysis = example("speedup")
    at = [setting(size=32), setting(size=64)]
    ratios = [ratio.model_copy(update={"at": where}) for ratio, where in zip(analysis.ratios, at, strict=True)]
    (verdict,) = verdicts([claim_of("gpu_blog", 9.97)], study, analysis.model_copy(update={"ratios": ratios}))
    assert [ratio.value for ratio in verdict.ratios] == [pytest.approx(17.47, abs=0.01)]


def level(own: Setting, seconds: float, factor: float) -> Level:
    time = Estimate(value=seconds, low=seconds / factor, high=seconds * factor)
    return example("batch-size")[1].groups[0].levels[0].model_copy(update={"setting": own, "x": None, "time": time})


def test_mnists_ratio_is_compared_between_the_settings_that_it_names() -> None:
    """Its study compares strategies; the claim divides one process on the CPU by a mirrored strategy on the GPU."""
    study = named("mnist-strategies")
    single, ddp = (setting(loop="fastai", strategy=strategy) for strategy in ("single", "ddp"))
    groups = [
        Group(setting=setting(device="cpu"), levels=[level(single, 140.0, 1.1), level(ddp, 200.0, 1.1)]),
        Group(setting=setting(device="cuda"), levels=[level(single, 5.0, 1.1), level(ddp, 10.0, 1.1)]),
    ]
    analysis = example("speedup")[1].model_copy(update={"groups": groups, "ratios": []})
    (verdict,) = verdicts(CLAIMS, study, analysis)
    (ratio,) = verdict.ratios
    assert (verdict.claim.ratio, verdict.evidence) == (14, "consistent")
    assert ratio.value == pytest.approx(14.0)
    assert ratio.high == pytest.approx(14 * 1.1 ** (2**0.5))  # the noise of both means
    assert claim_text(verdict).startswith("14.0 times (95%: 12.2 to 16.0) at fastai, single over ddp.")
    half = analysis.model_copy(update={"groups": groups[:1]})
    assert verdicts(CLAIMS, study, half)[0].evidence == "cannot_say"


def test_every_claim_has_a_study_that_can_speak_to_it() -> None:
    """As the studies stand in their files, with both devices."""
    studies = [named(path.stem) for folder in study_folders() for path in sorted(folder.glob("*.yaml"))]
    empty = example("speedup")[1].model_copy(update={"groups": [], "ratios": []})
    found = [verdict.claim for study in studies for verdict in verdicts(CLAIMS, study, empty)]
    assert {(one.document, one.lines) for one in found} == {(one.document, one.lines) for one in CLAIMS}


def test_a_reduced_study_says_that_it_did_less_work() -> None:
    study, analysis = example("speedup")
    (verdict,) = verdicts(CLAIMS, study.model_copy(update={"full": {"replicates": 3}}), analysis)
    assert verdict.reduced
    assert claim_text(verdict).endswith("This is the reduced size, which does less work than the document.")


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("value", [0.0123, 7.1, 123456.0])
@pytest.mark.parametrize("within", [None, False, True])
def test_no_headline_is_longer_than_a_card(count: int, value: float, within: bool | None) -> None:
    ratios = tuple(RatioHere({"loader.workers": str(at)}, value * (1 + at), 1.0, 2.0, within) for at in range(count))
    kinds: tuple[Evidence, ...] = ("consistent", "cannot_say", "contradicted", "mixed")
    for evidence in kinds:
        assert len(claim_headline(ClaimVerdict(claim_of("gpu_blog", 9.97), evidence, ratios=ratios))) <= LONGEST
    names = tuple(str(64 + 1000 * at) for at in range(count + 2))
    group = FastestHere(setting(device="cuda"), names, "among")
    more: tuple[Evidence, ...] = (*kinds, "established", "tied")
    for evidence in more:
        assert len(claim_headline(ClaimVerdict(claim_of("gpu_blog"), evidence, groups=(group,)))) <= LONGEST
