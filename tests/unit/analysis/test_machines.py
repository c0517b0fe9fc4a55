"""Runs of several machines and of several versions of the software: what is a caveat, and what a factor means."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.analysis.stats.findings import MixedImages, MixedMachines, MixedSoftware, SeveralMachines, SeveralStarts
from study.analysis.table.exclusions import with_exclusions
from study.config.study import Study
from tests.conftest import study_values
from tests.timings import analysed, as_timings

BATCH = "training.batch_size"


def timings(nodes: int, extra: float = 1.0, blocks: int = 6) -> pd.DataFrame:
    """Two equal settings in blocks, each block on one of the machines; the last machine is slower by ``extra``."""
    noise = np.random.default_rng(1)
    return as_timings(
        {
            "block": block + 1,
            BATCH: level,
            "node": f"{block % nodes:08x}",
            "fit_seconds": 10 * (extra if block % nodes == nodes - 1 else 1) * np.exp(noise.normal(0, 0.01)),
            "accuracy": 0.9,
            "chance_accuracy": 0.5,
            "valid_images": 200,
        }
        for block in range(blocks)
        for level in (4, 8)
    )


def study(**factors: Any) -> Study:
    return Study.model_validate(study_values(factors={BATCH: [4, 8]} | factors, curve=None, replicates=6))


def test_a_start_on_each_of_several_machines_is_a_start_of_its_own() -> None:
    frame = with_exclusions(study(), timings(3))
    assert frame["session"].nunique() == 3
    assert (frame.groupby("node")["session"].nunique() == 1).all()
    one = with_exclusions(study(), timings(1))
    assert one["session"].tolist() == [1] * 12


def test_a_slow_machine_is_named_and_makes_no_difference_between_settings() -> None:
    found = analysed(study(), timings(2, extra=1.5))
    assert [caveat for caveat in found.warnings if isinstance(caveat, SeveralMachines)] == [SeveralMachines(machines=2)]
    assert not [caveat for caveat in found.warnings if isinstance(caveat, SeveralStarts)]
    (group,) = found.groups
    assert sorted(group.indistinguishable) == ["4", "8"]


@pytest.mark.parametrize(
    ("factor", "column", "caveat"),
    [
        ("image", "image_id", MixedImages),
        ("image", "software", MixedSoftware),
        ("machine", "device_name", MixedMachines),
    ],
)
def test_what_a_factor_is_meant_to_change_is_no_caveat(factor: str, column: str, caveat: type) -> None:
    frame = timings(1)
    values = np.where(frame[BATCH] == 4, "one", "two")
    frame = frame.assign(**{column: values, factor: values})
    assert [one for one in analysed(study(), frame).warnings if isinstance(one, caveat)]
    meant = study(**{factor: ["one", "two"]}).model_copy(update={"factors": {factor: ["one", "two"]}})
    assert not [one for one in analysed(meant, frame).warnings if isinstance(one, caveat)]
