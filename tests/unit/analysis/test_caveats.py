"""What the means become with a caveat counted in, on the study of ways, whose three groups have every kind."""

import pytest

from study.analysis.analysis import read_analysis
from study.analysis.caveats.base import OneCaveat, means
from study.analysis.caveats.learning import MayLearnLess
from study.analysis.caveats.runs import FarRuns
from study.analysis.caveats.work import DecodedBefore, ShortJob, UnequalWork
from tests.examples import results_of

ANALYSIS = read_analysis(results_of("example-ways") / "ways" / "fit.json")
FASTAI, TORCH, SWITCHED = ANALYSIS.groups
BEFORE = means(SWITCHED)


def caveat(kind: type[OneCaveat]) -> OneCaveat:
    """The last caveat of a kind: that of the last group where each has its own."""
    return [one for one in ANALYSIS.warnings if isinstance(one, kind)][-1]


def test_a_far_run_counts_in_its_own_setting_alone() -> None:
    level = next(level for level in SWITCHED.levels if level.time_without_far)
    assert level.time_without_far
    assert caveat(FarRuns).applied(SWITCHED) == BEFORE | {level.label: level.time_without_far}
    assert caveat(FarRuns).applied(TORCH) is None


def test_decoding_off_the_clock_is_added_where_the_images_lie_on_the_device() -> None:
    after = caveat(DecodedBefore).applied(SWITCHED)
    assert after
    assert all(0.7 < after[label] - BEFORE[label] < 0.8 for label in BEFORE)
    assert caveat(DecodedBefore).applied(FASTAI) is None


def test_a_setting_that_may_learn_less_is_left_out_of_its_group() -> None:
    assert caveat(MayLearnLess).applied(SWITCHED) == {label: one for label, one in BEFORE.items() if label != "64"}
    assert caveat(MayLearnLess).applied(FASTAI) is None


def test_a_longer_job_has_the_times_of_its_steady_steps() -> None:
    after = caveat(ShortJob).applied(SWITCHED)
    assert after
    assert after["64"] == pytest.approx(0.31, rel=0.15)


def test_other_caveats_leave_every_mean_as_it_is() -> None:
    assert caveat(UnequalWork).applied(SWITCHED) is None
