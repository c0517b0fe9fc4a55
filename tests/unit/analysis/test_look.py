"""A look: half the width of the answer's own interval, once its noise has 8 degrees of freedom."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from study.analysis.analysis import StudyResult, kept_result, look, result_of
from study.analysis.answers.contrast import Contrast
from study.analysis.answers.switches import Switches
from study.analysis.answers.ways import Ways
from study.analysis.look import intervals_of, progress_of
from study.analysis.stats.groups import groups_of
from study.analysis.step import write_analysis
from study.analysis.table.rows import NOT_YET
from study.artifacts.block import Reached
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.base.files import write_new
from tests.conftest import tiny_plan
from tests.unit.artifacts.test_records import make_record

SIZES = {"training.batch_size": [2, 4, 8]}
PRECISIONS = {"training.precision": ["fp32", "bf16"]}
FORMATS = {"training.memory_format": ["contiguous", "channels_last"]}


def measured(
    folder: Path, blocks: int, noise: float = 0.01, left_out: int = 0, **changes: Any
) -> tuple[Plan, Results]:
    """A study with records of its first blocks, the last runs ``left_out``: every setting takes 10
    s."""
    plan, files = (
        tiny_plan(**{"factors": SIZES, "replicates": {"until": "5%"}} | changes),
        Results(folder),
    )
    rng, runs = np.random.default_rng(1), [run for run in plan.runs if run.block <= blocks]
    write_plans([plan], folder)
    for number, run in enumerate(runs[: len(runs) - left_out]):
        record = make_record(plan, number, fit_seconds=10 * float(np.exp(rng.normal(0, noise))))
        write_new(files.record("tiny", run.file), record.model_dump_json(indent=1))
    return plan, files


def looked(folder: Path, blocks: int, **changes: Any) -> Reached:
    found = look(*measured(folder, blocks, **changes))
    assert found is not None
    return found


def kept_of(files: Results) -> StudyResult:
    """What the step ``analyse`` wrote."""
    assert write_analysis("tiny", files) is None
    return kept_result(files, "tiny")


@pytest.mark.parametrize(("sizes", "first"), [([2, 4], 9), ([2, 4, 8], 5), ([2, 4, 8, 10, 12], 3)])
def test_a_narrow_interval_is_enough_once_its_noise_has_8_degrees_of_freedom(
    tmp_path: Path, sizes: list[int], first: int
) -> None:
    factors = {"training.batch_size": sizes}
    before, after = (looked(tmp_path / str(n), n, factors=factors) for n in (first - 1, first))
    assert before.half_width is not None
    assert before.half_width < 0.05
    assert (before.enough, after.enough, after.degrees) == (False, True, 8.0)


def test_a_block_that_another_machine_is_at_work_on_is_not_looked_at(tmp_path: Path) -> None:
    assert looked(tmp_path / "a", 6, left_out=1) == looked(tmp_path / "b", 5)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (Contrast, {"factors": SIZES | PRECISIONS, "contrast": "training.precision"}),
        (Switches, {"factors": PRECISIONS | FORMATS, "effects": True, "curve": None}),
        (Ways, {"factors": SIZES | PRECISIONS}),
    ],
)
def test_the_look_is_at_the_ratios_of_the_answer_that_is_printed(
    tmp_path: Path, kind: type, changes: dict[str, Any]
) -> None:
    plan, files = measured(tmp_path, 12, **changes)
    result = result_of(files, "tiny")
    fitted, answers = groups_of(plan.study, result.frame), result.analysis.answers
    first = next(one for one in (*result.analysis.switches, *answers) if isinstance(one, kind))
    widest, *_ = sorted(
        intervals_of(fitted, first, answers), key=lambda one: -(one.half_width or 0)
    )
    reached = result.analysis.reached
    assert reached is not None
    assert (reached.half_width, reached.enough) == (widest.half_width, True)


def test_blocks_that_are_not_needed_are_as_if_they_were_not_planned(tmp_path: Path) -> None:
    plan, files = measured(tmp_path, 6)
    broken = make_record(plan, 18)
    write_new(
        files.records("tiny") / "broken" / plan.runs[18].file, broken.model_dump_json(indent=1)
    )
    for result in (result_of(files, "tiny"), kept_of(files)):
        progress = progress_of(result.plan, result.frame)
        assert (progress.whole, progress.planned, len(result.frame)) == (True, 18, 18)
        assert not (result.frame["message"] == NOT_YET).any()
        assert result.analysis.screen.job[-1].startswith(
            "stopped after 6 blocks: the interval is ±"
        )
        assert (
            result.analysis.screen.next is None
            or "still to be made" not in result.analysis.screen.next.title
        )


def test_a_study_that_is_not_narrow_yet_lacks_runs_and_one_at_its_most_says_what_it_reached(
    tmp_path: Path,
) -> None:
    result = result_of(measured(tmp_path / "a", 6, noise=0.2)[1], "tiny")
    assert not progress_of(result.plan, result.frame).whole
    assert result.analysis.screen.job[-1].startswith("6 blocks of at most 20: ±")
    most = result_of(
        measured(tmp_path / "b", 6, noise=0.2, replicates={"until": "5%", "most": 6})[1], "tiny"
    )
    assert most.analysis.screen.job[-1].startswith("6 blocks, the most: ±")
    assert most.analysis.screen.job[-1].endswith("% is reached, 5% was asked")
