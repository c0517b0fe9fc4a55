"""What the analysis does with the reference workload of each run."""

from statistics import fmean

import numpy as np
import pandas as pd
import pytest

from study.analysis.analysis import Analysis
from study.analysis.answers.contrast import Contrast, is_explained
from study.analysis.answers.fastest import CannotSay, Fastest
from study.analysis.caveats.machine import MachineChanged
from study.analysis.report.tables import NONE, level_row
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.machine_change import with_machine
from study.artifacts.samples import WARM_UP_REPETITIONS, ReferenceWorkload
from study.artifacts.setting import EVERYWHERE
from study.config.study import Study
from tests.conftest import repeats, study_values
from tests.timings import as_timings
from tests.unit.analysis.found import only
from tests.unit.analysis.planted import analysis_of


def test_its_value_leaves_out_the_warm_up_and_holds_what_interrupts_it() -> None:
    slow = [9.0] * WARM_UP_REPETITIONS
    measured = ReferenceWorkload(first_use_seconds=1.0, before=[*slow, 1.0, 1.0, 4.0], after=[*slow, 8.0, 8.0, 8.0])
    assert measured.seconds == pytest.approx((fmean([1, 1, 4]) * 8) ** 0.5)
    assert measured.model_copy(update={"after": []}).seconds == pytest.approx(2.0)


def simulated(
    effect: float, machine: np.ndarray, slope: float = 1.0, noise: float = 0.02, null: bool = False
) -> Analysis:
    """Two precisions in five blocks; ``machine`` holds each run's state, ``effect`` is bf16's true ratio."""
    rng = np.random.default_rng(3)
    study = Study.model_validate(
        study_values(
            factors={"training.precision": ["fp32", "bf16"]}, curve=None, contrast="training.precision", replicates=5
        )
    )
    rows = []
    for index, state in enumerate(machine):
        level = ("fp32", "bf16")[index % 2]
        seconds = 10.0 * (effect if level == "bf16" else 1.0) * state**slope * np.exp(rng.normal(0, noise))
        rows.append(
            {
                "run": f"{level}-{index}", "outcome": "ok", "message": None, "device": "cpu", "session": 1,
                "block": index // 2 + 1, "training.precision": level, "training.batch_size": 4,
                "fit_seconds": seconds, "images_processed": 32, "reference_seconds": None if null else 0.002 * state,
            }
        )  # fmt: skip
    return analysis_of(study, as_timings(rows))


STEADY = np.ones(10)
WANDERING = np.exp(np.random.default_rng(5).normal(0, 0.3, 10))


LOADED = np.array([1.0, 1.5, 1.3, 1.8, 1.0, 1.3, 1.1, 1.75, 1.0, 1.6])


def test_a_change_of_the_machine_that_meets_one_level_alone_is_no_finding() -> None:
    """bf16 ran whenever the machine was loaded more, though it is as fast as fp32."""
    analysis = simulated(1.0, LOADED)
    (group,) = analysis.groups
    (ratio,) = analysis.ratios
    assert ratio.ratio.high is not None
    assert ratio.ratio.high < 1  # the raw times would have published it
    assert is_explained(ratio)
    assert group.machine == "explains"
    fastest, contrast = analysis.answers
    assert isinstance(fastest, Fastest)
    assert fastest.machine == "explains"
    assert fastest.machine_change == pytest.approx(1.8)
    assert isinstance(contrast, Contrast)
    assert (contrast.explained, contrast.unclear) == ([EVERYWHERE], [])
    assert set(group.indistinguishable) == {"fp32", "bf16"}
    (changed,) = only(MachineChanged, analysis.warnings)
    assert changed.slowest_seconds / changed.fastest_seconds == pytest.approx(1.8)


def test_where_the_machine_leaves_no_answer_no_setting_is_marked_as_the_best() -> None:
    analysis = simulated(1.0, LOADED)
    (group,) = analysis.groups
    assert group.best is None
    rows = [level_row(level, group) for level in group.levels]
    assert {(row.look, row.times_best, row.verdict) for row in rows} == {("", NONE, "not decided")}
    assert not analysis.answers[0].decided
    (steady,) = simulated(0.5, WANDERING).groups
    assert steady.best == "bf16"


def test_two_runs_a_level_are_too_few_to_say_anything_whatever_the_machine_did() -> None:
    analysis = simulated(1.0, np.array([1.0, 1.6, 1.0, 1.61]), noise=0.002)
    (ratio,) = analysis.ratios
    assert (ratio.ratio.low, ratio.ratio.high, ratio.adjusted) == (None, None, None)
    unsaid, _ = analysis.answers
    assert isinstance(unsaid, CannotSay)
    assert set(unsaid.reasons.values()) == {"few_runs"}
    assert unsaid.more_runs == 1


def test_a_reference_workload_that_the_times_do_not_follow_explains_nothing() -> None:
    """Three blocks, a real effect, and a reference workload that is mere noise."""
    rng = np.random.default_rng(8)
    explained = 0
    for _ in repeats(12, 50):
        analysis = simulated(1 / 1.5, np.exp(rng.normal(0, 0.06, 6)), slope=0.0, noise=0.03)
        explained += analysis.groups[0].machine == "explains" or is_explained(analysis.ratios[0])
    assert explained <= 0.08 * len(repeats(12, 50))


def test_a_real_difference_stays_one_on_a_machine_that_wanders() -> None:
    analysis = simulated(0.5, WANDERING)
    (ratio,) = analysis.ratios
    assert not is_explained(ratio)
    assert analysis.groups[0].machine is None
    assert ratio.adjusted is not None
    assert ratio.adjusted.value == pytest.approx(2.0, rel=0.05)
    assert analysis.groups[0].indistinguishable == ["bf16"]


def test_the_correction_narrows_the_interval_where_the_machine_is_what_varied() -> None:
    (ratio,) = simulated(0.9, WANDERING).ratios
    assert ratio.adjusted is not None
    raw, adjusted = (np.log((item.high or 9) / (item.low or 0.1)) for item in (ratio.ratio, ratio.adjusted))
    assert adjusted < raw / 3
    assert ratio.adjusted.value == pytest.approx(1 / 0.9, rel=0.03)


def test_times_that_do_not_follow_the_reference_workload_are_not_bent_by_it() -> None:
    """The slope is estimated: a job that the machine's change left alone keeps its times."""
    (group,) = simulated(0.8, WANDERING, slope=0.0).groups
    for level in group.levels:
        assert level.time is not None
        assert level.time_adjusted is not None
        assert level.time_adjusted.value == pytest.approx(level.time.value, rel=0.03)


def test_on_a_steady_machine_nothing_is_adjusted() -> None:
    analysis = simulated(0.9, STEADY)
    assert analysis.ratios[0].adjusted is None
    assert analysis.groups[0].levels[0].time_adjusted is None
    assert analysis.groups[0].machine_change == pytest.approx(1.0)
    assert not only(MachineChanged, analysis.warnings)


def test_records_without_a_reference_workload_are_analysed_as_before() -> None:
    analysis = simulated(0.9, WANDERING, null=True)
    assert analysis.groups[0].machine_change is None
    assert analysis.ratios[0].adjusted is None


def test_of_a_gpus_two_reference_workloads_the_one_counts_that_changed_more() -> None:
    """Its CPUs load its data: their change moves its times though the GPU itself is as it was."""
    frame = pd.DataFrame(
        {
            "device": ["cuda"] * 4,
            "reference_seconds": [1.0, 1.01, 1.0, 1.0],
            "host_reference_seconds": [2.0, 4.0, 2.0, 4.0],
        }
    )
    assert with_machine(frame)["pace"].tolist() == pytest.approx([0.5**0.5, 2**0.5] * 2)
    steady = with_machine(frame.assign(host_reference_seconds=float("nan")))
    assert steady["pace"].max() < 1.01


def test_the_slope_of_the_covariate_is_recovered() -> None:
    rng = np.random.default_rng(1)
    state = np.exp(rng.normal(0, 0.4, 200))
    seconds = 5.0 * state**0.7 * np.exp(rng.normal(0, 0.01, 200))
    levels = ["a", "b"] * 100
    blocks = [index // 2 for index in range(200)]
    model = fit_log_model(seconds.tolist(), levels, blocks, covariate=state.tolist(), centred=False)
    assert model.mean("a").value == pytest.approx(5.0, rel=0.01)
    assert model.ratio("a", "b").value == pytest.approx(1.0, rel=0.01)
