"""What the analysis does with the reference workload of each run."""

from statistics import fmean

import numpy as np
import pandas as pd
import pytest

from study.analysis.analysis import Analysis
from study.analysis.answers.context import Context
from study.analysis.answers.contrast import Contrast
from study.analysis.answers.fastest import Fastest
from study.analysis.caveats.conditions import MachineChanged
from study.analysis.stats.usable import mean_drift_bias, survives_drift, with_drift
from study.artifacts.samples import WARM_UP_REPETITIONS, ReferenceWorkload
from study.config.study import Study
from tests.conftest import repeats, study_values
from tests.timings import as_timings
from tests.unit.analysis.planted import analysis_of, only


def test_its_value_leaves_out_the_warm_up_and_holds_what_interrupts_it() -> None:
    slow = [9.0] * WARM_UP_REPETITIONS
    measured = ReferenceWorkload(
        first_use_seconds=1.0, before=[*slow, 1.0, 1.0, 4.0], after=[*slow, 8.0, 8.0, 8.0]
    )
    assert measured.seconds == pytest.approx((fmean([1, 1, 4]) * 8) ** 0.5)
    assert measured.model_copy(update={"after": []}).seconds == pytest.approx(2.0)


def test_a_lone_stop_of_a_tenth_of_a_second_is_no_change_of_the_machine() -> None:
    """Fifty repetitions of 2 ms are over in a tenth of a second: one stop in them doubled their
    mean, and withheld verdicts of runs that took 4 s and 14 s."""
    calm = [0.002] * (WARM_UP_REPETITIONS + 50)
    stopped = ReferenceWorkload(first_use_seconds=0.1, before=calm, after=[*calm[:-1], 0.108])
    assert stopped.seconds < 1.05 * 0.002


STUDY = Study.model_validate(
    study_values(
        factors={"training.precision": ["fp32", "bf16"]},
        curve=None,
        contrast="training.precision",
        replicates=5,
    )
)


def simulated(
    effect: float, machine: np.ndarray, slope: float = 1.0, noise: float = 0.02, null: bool = False
) -> Analysis:
    """Two precisions in five blocks; ``machine`` holds each run's state, ``effect`` is bf16's true
    ratio."""
    rng = np.random.default_rng(3)
    seconds = 10.0 * machine**slope * np.exp(rng.normal(0, noise, len(machine)))
    rows = [
        {
            "block": index // 2 + 1,
            "training.precision": ("fp32", "bf16")[index % 2],
            "fit_seconds": seconds[index] * (1.0, effect)[index % 2],
            "images_processed": 32,
            "reference_seconds": None if null else 0.002 * state,
        }
        for index, state in enumerate(machine)
    ]
    return analysis_of(STUDY, as_timings(rows))


def contrast_of(analysis: Analysis) -> Contrast:
    """Its statement of the two precisions."""
    (found,) = only(Contrast, analysis.answers)
    return found


STEADY = np.ones(10)
WANDERING = np.exp(np.random.default_rng(5).normal(0, 0.3, 10))


LOADED = np.array([1.0, 1.5, 1.3, 1.8, 1.0, 1.3, 1.1, 1.75, 1.0, 1.6])


def test_a_change_of_the_machine_that_meets_one_level_alone_is_no_finding() -> None:
    """bf16 ran whenever the machine was loaded more, though it is as fast as fp32."""
    analysis = simulated(1.0, LOADED)
    (group,) = analysis.groups
    (ratio,) = simulated(1.0, LOADED, null=True).ratios
    assert ratio.ratio.high is not None
    assert ratio.ratio.high < 1  # the raw times would have published it
    assert group.drift_confounded
    fastest, contrast = analysis.answers
    assert isinstance(fastest, Fastest)
    assert fastest.drift_confounded
    assert fastest.machine_change == pytest.approx(1.8)
    assert isinstance(contrast, Contrast)
    assert contrast.drift_confounded
    assert not contrast.decided
    assert set(group.indistinguishable) == {"fp32", "bf16"}
    (changed,) = only(MachineChanged, analysis.warnings)
    assert changed.slowest_seconds / changed.fastest_seconds == pytest.approx(1.8)


def test_where_the_machine_may_be_the_difference_no_ratio_has_an_interval_on_the_page_or_in_the_answer() -> (
    None
):
    """The machine swings twofold within blocks: an interval of the noise held the truth in 67 to
    78% of studies."""
    swinging = simulated(1.0, LOADED)
    contrast, (ratio,) = contrast_of(swinging), swinging.ratios
    told = [contrast.overall, contrast.least.ratio, contrast.most.together]
    told += [ratio.ratio, ratio.together]
    assert {(one.low, one.high) for one in told} == {(None, None)}
    assert "machine's change within blocks may explain it" in contrast.text(Context(STUDY))
    steady = contrast_of(simulated(1.0, LOADED, null=True))
    assert None not in (steady.overall.low, steady.least.ratio.low, steady.most.together.low)


def test_where_the_sides_change_places_each_ratio_is_judged_by_its_own_runs() -> None:
    """Their mean is smaller than the machine's change, and withheld ratios of 1.5 both ways."""
    rng, effects = np.random.default_rng(4), {16: 1.5, 64: 1 / 1.49}
    rows = [
        {
            "block": block,
            "training.precision": precision,
            "training.batch_size": size,
            "fit_seconds": 10 * effect ** (precision == "bf16") * np.exp(rng.normal(0, 0.005)),
            "images_processed": 32,
            "reference_seconds": 0.002 * (1 + 0.2 * (precision == "bf16")),
        }
        for block in range(1, 4)
        for size, effect in effects.items()
        for precision in ("fp32", "bf16")
    ]
    factors = {"training.precision": ["fp32", "bf16"], "training.batch_size": [*effects]}
    study = STUDY.model_copy(update={"factors": factors | {"device": ["cpu"]}})
    analysis = analysis_of(study, as_timings(rows))
    contrast = contrast_of(analysis)
    assert contrast.overall.low is None
    assert contrast.decided
    assert [one.ratio.excludes_one for one in analysis.ratios] == [True, True]


def test_a_reference_workload_that_the_times_do_not_follow_explains_nothing() -> None:
    """Five blocks, an effect of 10%, and a reference workload that is mere noise of 30%."""
    rng = np.random.default_rng(8)
    explained = 0
    for _ in repeats(12, 50):
        analysis = simulated(1 / 1.1, np.exp(rng.normal(0, 0.3, 10)), slope=0.0, noise=0.01)
        explained += analysis.groups[0].drift_confounded or contrast_of(analysis).drift_confounded
    assert explained <= 0.08 * len(repeats(12, 50))


def test_a_real_difference_that_is_larger_than_the_machines_change_in_each_block_is_told() -> None:
    swing = np.array([1.0, 1.3, 2.0, 2.2, 1.5, 1.2, 1.0, 1.1, 1.9, 1.4])
    analysis = simulated(0.4, swing)
    assert not analysis.groups[0].drift_confounded
    assert analysis.groups[0].indistinguishable == ["bf16"]
    contrast = contrast_of(analysis)
    assert contrast.decided
    assert contrast.overall.low is not None
    assert contrast.overall.low < 2.5 < (contrast.overall.high or 0)
    # What the machine may have added in the mean moves the bound that does not know, that of a
    # single setting, too.
    bias = (np.log(swing).reshape(-1, 2) @ [1, -1]).mean()
    # the slower side met the slower machine: the ratio may be smaller, and no larger
    assert bias > 0
    one = contrast.least.ratio
    assert one.low and one.high
    assert np.log(one.value / one.low) - bias == pytest.approx(np.log(one.high / one.value))


def test_a_machine_that_was_slower_on_the_faster_side_explains_nothing() -> None:
    """Each run of one setting was faster than each of the other, and the verdict was withheld."""
    analysis = simulated(
        0.8, np.array([1.0, 1.0, 1.0, 1.35, 1.0, 1.3, 1.0, 1.0, 1.0, 1.3]), slope=0.1
    )
    assert analysis.groups[0].indistinguishable == ["bf16"]
    assert contrast_of(analysis).decided


@pytest.mark.parametrize(("drifted", "told"), [(2, True), (3, False)])
def test_blocks_without_a_change_of_the_machine_tell_where_they_are_most(
    drifted: int, told: bool
) -> None:
    biases = pd.Series([0.4] * drifted + [0.0] * (5 - drifted))
    assert survives_drift(pd.Series([0.3] * 5), biases) == told
    assert survives_drift(pd.Series([0.3] * 5), -biases)
    assert not survives_drift(pd.Series([0.3, 0.3, 0.3, 0.3, -0.1]), biases)


def test_a_lean_of_the_machine_below_ten_percent_counts_where_all_blocks_show_it() -> None:
    """A neighbour of 8% met one of two equal settings in each block: it was called slower."""
    noise, lean = np.array([0.01, -0.01, 0.005, -0.005, 0.0]), pd.Series([0.07, 0.09, 0.08] * 2)
    slower = lean[:5] + noise
    assert not survives_drift(slower, lean[:5])
    assert not survives_drift(-slower, -lean[:5])
    assert survives_drift(slower + 0.1, lean[:5])
    assert survives_drift(-slower, lean[:5])
    assert survives_drift(slower, pd.Series([0.08, -0.08, 0.09, -0.07, 0.0]))
    assert mean_drift_bias(lean[:5]) == pytest.approx(lean[:5].mean())
    assert mean_drift_bias(pd.Series([0.08, -0.08, 0.09, -0.07, 0.0])) == 0


def test_a_machine_that_changed_between_blocks_alone_costs_no_verdict() -> None:
    analysis = simulated(0.8, np.repeat([1.0, 2.0, 1.2, 1.9, 1.0], 2))
    assert analysis.groups[0].indistinguishable == ["bf16"]
    assert contrast_of(analysis).decided


def test_of_a_gpus_two_reference_workloads_the_one_counts_that_changed_more() -> None:
    """Its CPUs load its data: their change moves its times though the GPU itself is as it was."""
    frame = pd.DataFrame(
        {
            "device": ["cuda"] * 4,
            "reference_seconds": [1.0, 1.01, 1.0, 1.0],
            "host_reference_seconds": [2.0, 4.0, 2.0, 4.0],
        }
    )
    assert with_drift(frame)["drift"].tolist() == pytest.approx([0.5**0.5, 2**0.5] * 2)
    steady = with_drift(frame.assign(host_reference_seconds=float("nan")))
    assert steady["drift"].max() < 1.01


def test_two_blocks_tell_nothing_of_two_precisions_where_the_machine_changed_as_much_within_them() -> (
    None
):
    analysis = simulated(1.0, np.array([1.0, 1.6, 1.0, 1.61]), noise=0.002)
    assert not any(answer.decided for answer in analysis.answers)
    assert contrast_of(analysis).drift_confounded
