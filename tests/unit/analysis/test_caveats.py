"""What the means become with a caveat counted in, on the example's three ways."""

from study.analysis.analysis import read_analysis
from study.analysis.caveats.base import OneCaveat
from study.analysis.caveats.conditions import DecodedBefore, MayLearnLess
from study.analysis.caveats.runs import OutlierRuns
from study.analysis.table.tables import read_timings
from study.artifacts.plan import Plan
from tests.examples import with_analysis
from tests.timings import ruled
from tests.unit.analysis.planted import analysis_of

STUDY = with_analysis("photographs") / "photographs"
ANALYSIS = read_analysis(STUDY / "fit.json")
FASTAI, TORCH, SWITCHED = ANALYSIS.groups
BEFORE = SWITCHED.seconds


def caveat(kind: type[OneCaveat]) -> OneCaveat:
    """The last caveat of a kind: that of the last group where each has its own."""
    return [one for one in ANALYSIS.warnings if isinstance(one, kind)][-1]


def test_an_outlier_counts_in_its_own_setting_alone() -> None:
    plan = Plan.read(STUDY / "plan.json")
    frame = read_timings(STUDY / "timings.csv", plan)
    slow = frame["run"] == "bs64-torch-channels_last-cudagraphtrue-fused-device-cuda-r1"
    frame.loc[slow, ["fit_seconds", "blog_seconds"]] *= 4
    found = analysis_of(plan.study, ruled(plan.study, frame))
    *_, switched = found.groups
    (outliers,) = [one for one in found.warnings if isinstance(one, OutlierRuns)]
    level = next(level for level in switched.levels if level.time_without_outliers)
    assert level.label == "64"
    assert level.time_without_outliers
    assert outliers.applied(switched) == switched.seconds | {"64": level.time_without_outliers}
    assert outliers.applied(found.groups[1]) is None


def test_decoding_off_the_clock_is_added_where_the_images_lie_on_the_device() -> None:
    after = caveat(DecodedBefore).applied(SWITCHED)
    assert after
    assert all(0.1 < after[label] - BEFORE[label] < 0.3 for label in BEFORE)
    assert caveat(DecodedBefore).applied(FASTAI) is None


def test_a_setting_that_may_learn_less_is_left_out_of_its_group() -> None:
    left = {label: one for label, one in BEFORE.items() if label not in ("96", "128")}
    assert caveat(MayLearnLess).applied(SWITCHED) == left
    assert caveat(MayLearnLess).applied(FASTAI) is None
