"""Runs of several machines and of several versions of the software: what is a caveat, and what a
factor means."""

from typing import Any

import numpy as np
import pandas as pd

from study.analysis.caveats.machine import Starts
from study.config.study import Study
from tests.conftest import study_values
from tests.timings import as_timings, ruled
from tests.unit.analysis.planted import analysis_of, only

BATCH = "training.batch_size"


def timings(nodes: int, extra: float = 1.0, blocks: int = 6) -> pd.DataFrame:
    """Two equal settings in blocks, each block on one of the machines; the last machine is slower
    by ``extra``."""
    noise = np.random.default_rng(1)
    return as_timings(
        {
            "block": block + 1,
            BATCH: level,
            "node": f"{block % nodes:08x}",
            "fit_seconds": (10 * extra if block % nodes == nodes - 1 else 10)
            * np.exp(noise.normal(0, 0.01)),
        }
        for block in range(blocks)
        for level in (4, 8)
    )


def study(**factors: Any) -> Study:
    return Study.model_validate(
        study_values(factors={BATCH: [4, 8]} | factors, curve=None, replicates=6)
    )


def test_a_start_on_each_of_several_machines_is_a_start_of_its_own() -> None:
    frame = ruled(study(), timings(3))
    assert frame["session"].nunique() == 3
    assert (frame.groupby("node")["session"].nunique() == 1).all()
    one = ruled(study(), timings(1))
    assert one["session"].tolist() == [1] * 12


def test_a_slow_machine_is_named_and_makes_no_difference_between_settings() -> None:
    found = analysis_of(study(), ruled(study(), timings(2, extra=1.5)))
    assert only(Starts, found.warnings) == [Starts(starts=2, machines=2)]
    (group,) = found.groups
    assert sorted(group.indistinguishable) == ["4", "8"]
