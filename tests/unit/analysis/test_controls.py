"""The null control, what others do on a GPU, and what a run needs."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.analysis.answers.contrast import NullControl
from study.analysis.caveats.runs import ExcludedRuns, OutlierRuns
from study.analysis.report.content import glossary, resources
from study.analysis.table.exclusions import FIRST, MANY, OUTLIER
from study.artifacts.setting import EVERYWHERE
from study.base import devices
from study.config.study import Study
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan
from tests.conftest import HERE, study_values
from tests.timings import as_timings, ruled
from tests.unit.analysis.planted import analysis_of, only


def rows_of(study: Study, seconds: Any, **columns: Any) -> pd.DataFrame:
    """A row for each run of the study's plan; ``seconds`` gives its time from its settings and its
    number."""
    plan = make_plan("tiny", study, EngineChoice("none", "asked for"), HERE)
    rows = [
        {
            "run": run.name,
            "block": run.block,
            "training.batch_size": run.settings.training.batch_size,
            "fit_seconds": seconds(run.settings, number),
            "images_processed": 32,
            "control": run.settings.control,
        }
        | columns
        for number, run in enumerate(plan.runs)
    ]
    return as_timings(rows)


def study_of(**changes: Any) -> Study:
    return Study.model_validate(study_values(**changes))


def test_the_null_controls_runs_are_replicates_and_its_ratio_is_found() -> None:
    study = study_of(null_control=True, replicates=4)
    rng = np.random.default_rng(2)
    frame = rows_of(
        study, lambda settings, _: settings.training.batch_size * np.exp(rng.normal(0, 0.02))
    )
    found = analysis_of(study, frame)
    (group,) = found.groups
    assert [(level.label, level.runs) for level in group.levels] == [("4", 8), ("8", 8)]
    assert [ratio.at.levels for ratio in found.control] == [
        {"training.batch_size": 4},
        {"training.batch_size": 8},
    ]
    assert all(ratio.ratio.value == pytest.approx(1, rel=0.05) for ratio in found.control)
    last = found.answers[-1]
    assert isinstance(last, NullControl)
    assert (last.at, last.ratio) in [(ratio.at, ratio.ratio.value) for ratio in found.control]
    assert (last.intervals, last.outside) == (2, 0)


def test_the_two_runs_of_a_null_control_are_no_factor_that_the_page_explains() -> None:
    factors = {
        "device": ["cpu"],
        "training.batch_size": [4, 8],
        "loader.kind": ["workers", "device"],
    }
    names = [name for name, _ in glossary(study_of(null_control=True, curve=None, factors=factors))]
    assert names == [
        "batch size (4, 8)",
        "loader (data loader = workers, decoded beforehand = device)",
    ]


def test_the_page_explains_what_a_placeholder_of_a_command_is() -> None:
    names = ("precision", "batch_size", "compiled")
    study = study_of(
        command="python a.py {precision} {batch_size} {compiled}",
        curve=None,
        contrast=None,
        factors={f"arguments.{name}": ["a", "b"] for name in names},
    )
    assert dict(glossary(study))["precision (a, b)"] == "an argument of the command"


def test_a_null_control_that_differs_is_found() -> None:
    study = study_of(null_control=True, replicates=4, factors={"device": ["cpu"]}, curve=None)
    found = analysis_of(
        study,
        rows_of(
            study, lambda settings, n: (2.0 if settings.control == "first" else 1.0) + n / 1000
        ),
    )
    last = found.answers[-1]
    assert isinstance(last, NullControl)
    assert (last.at, last.intervals, last.outside) == (EVERYWHERE, 1, 1)
    assert last.ratio == pytest.approx(2, rel=0.01)


NVML = SimpleNamespace(
    NVMLError=RuntimeError, nvmlInit=lambda: None, nvmlShutdown=lambda: None,
    nvmlDeviceGetCount=lambda: 2, nvmlDeviceGetHandleByIndex=lambda index: index,
    nvmlDeviceGetComputeRunningProcesses=lambda index: [7] * index,
    nvmlDeviceGetUtilizationRates=lambda index: SimpleNamespace(gpu=90 * index),
    nvmlDeviceGetPowerUsage=lambda _: 70_000,
)  # fmt: skip
"""Two GPUs: an idle one, and one that others use."""


@pytest.mark.parametrize(
    ("visible", "expected"),
    [("0", devices.Activity(0, 0, 70.0)), ("1", devices.Activity(1, 90, 70.0))],
)
def test_others_on_the_gpus_that_are_visible_are_seen(
    visible: str, expected: devices.Activity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", NVML)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices.activity() == expected


def test_a_run_that_is_excluded_says_why() -> None:
    study = study_of(replicates=MANY)
    frame = rows_of(study, lambda *_: 1.0)
    frame["started"] = range(len(frame))
    frame.loc[0, "fit_seconds"] = 9.0
    assert excluded(study, frame) == [(OUTLIER, 9.0)]
    assert excluded(study, frame.assign(warmed_up=False)) == [(FIRST, 9.0)]
    few = frame[frame["block"] < MANY]
    assert excluded(study, few) == []
    assert [
        one.outliers for one in only(OutlierRuns, analysis_of(study, ruled(study, few)).warnings)
    ] == [[9.0]]
    frame.loc[0, "fit_seconds"] = 1.0
    assert excluded(study, frame.assign(warmed_up=False)) == []


def excluded(study: Study, frame: pd.DataFrame) -> list[tuple[str, float]]:
    """Reason and time of each run that is excluded."""
    found = only(ExcludedRuns, analysis_of(study, ruled(study, frame)).warnings)
    return [(run.reason, run.seconds) for one in found for run in one.runs]


def test_what_no_level_knows_is_no_row_of_the_table() -> None:
    study = study_of()
    found = analysis_of(
        study, rows_of(study, lambda *_: 1.0, energy_joules=50.0, images_per_joule=0.5)
    )
    assert [resource.key for resource in resources(found.groups[0])] == [
        "energy_joules",
        "images_per_joule",
    ]
