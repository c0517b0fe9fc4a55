"""What the means become with a caveat counted in, on the example's three ways."""

import math
import re

import numpy as np
import pytest

from study.analysis.analysis import read_analysis
from study.analysis.caveats.base import OneCaveat
from study.analysis.caveats.conditions import CarryOver, DecodedBefore, MayLearnLess
from study.analysis.caveats.runs import OutlierRuns
from study.analysis.table.tables import read_timings
from study.artifacts.plan import Plan
from study.config.study import Study
from study.host.plan.make import orders_of
from tests.conftest import repeats, study_values
from tests.examples import with_analysis
from tests.timings import as_timings, at_most, ruled
from tests.unit.analysis.planted import analysis_of, only

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


def carried(size: float, seed: int) -> list[CarryOver]:
    """The caveats of three equal settings in five blocks, of which one makes the next run slower by
    ``size``, in log seconds."""
    random, rows = np.random.default_rng(seed), list[dict[str, object]]()
    sizes, size_before = [16, 32, 64], 0
    for block, order in enumerate(orders_of([5] * 3, seed), start=1):
        for one in (sizes[place] for place in order):
            rows.append(
                {
                    "block": block,
                    "training.batch_size": one,
                    "fit_seconds": 10 * math.exp(size * (size_before == 64)),
                    "started": f"2026-01-01T00:00:{len(rows):02}+00:00",
                }
            )
            size_before = one
    frame = as_timings(rows)
    noise = np.exp(random.normal(0, 0.01, len(rows)))
    study = Study.model_validate(
        study_values(factors={"training.batch_size": sizes}, curve=None, replicates=5)
    )
    frame = frame.assign(fit_seconds=frame["fit_seconds"] * noise)
    return only(CarryOver, analysis_of(study, frame).warnings)


def test_a_setting_after_which_runs_take_longer_is_named_and_no_other_where_none_does() -> None:
    for seed in range(5):
        (found,) = carried(math.log(1.1), seed)
        assert found.after.label == "64"
        assert found.times == pytest.approx(1.1, abs=0.03)
        assert re.fullmatch(r"Runs after 64 take \d+(\.\d)?% longer", found.text())
    false = sum(len(carried(0.0, seed)) for seed in repeats(20, 200))
    assert false <= at_most(0.01, len(repeats(20, 200)))
