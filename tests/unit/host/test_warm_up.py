"""A start warms up in a few steps, which foretell the time of whole runs, and choose a length."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.artifacts.block import blocks_of
from study.artifacts.layout import Results
from study.artifacts.pace import Pace
from study.artifacts.plan import Plan, length_of, write_plans
from study.artifacts.prepared import Manifest
from study.artifacts.record_store import Session
from study.artifacts.samples import Timeline
from study.base.errors import StudyError
from study.base.files import write_whole
from study.config.load import read_selection, read_study
from study.host.steps import block, warm_up
from study.host.steps.attempt import Attempt, RunContext
from study.host.steps.block import measure_block
from study.host.steps.warm_up import WarmUp, choose_length
from tests.conftest import study_values, tiny_plan
from tests.unit.artifacts.test_records import make_record

SIZES = {"training.batch_size": [2, 4, 8]}
LADDER = {"minutes": 10, "rungs": [{"replicates": 2}, {"training.epochs": 2, "replicates": 1}]}
FOUR_EPOCHS = {"loop": "torch", "freeze_epochs": 0, "epochs": 4, "batch_size": 4}


def write_study(folder: Path, **changes: Any) -> None:
    """A tiny study with a ladder."""
    values = study_values(**{"ladder": LADDER, **changes})
    (folder / "tiny.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")


class Planted:
    """Warm-up runs in place of real ones: a step takes so many seconds, the process two more."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files, self.said, self.made = Results(folder), list[str](), list[RunContext]()
        self.step_seconds, self.outcome = 1.0, "ok"
        for module in (warm_up, block):
            monkeypatch.setattr(module, "attempt", self.attempt)
            monkeypatch.setattr(module, "start_fork_servers", lambda *_: None)

    def attempt(self, context: RunContext) -> Attempt:
        """A run in small, or a whole one."""
        self.made.append(context)
        record = make_record(context.plan, outcome=self.outcome)
        timeline = dict.fromkeys(Timeline.model_fields, 0.0) | {"training_seconds": 8.0}
        steps = {"unfrozen": self.step_seconds}
        paces = {
            name: Pace(
                setup_seconds=0.5, step_images=one.training.batch_size, step_seconds=steps,
                epoch_seconds=0.25, valid_image_seconds=0.125,
            )
            for name, one in context.paced.items()
        }  # fmt: skip
        told = {"paces": paces, "process_seconds": 10.0, "timeline": Timeline(**timeline)}
        return Attempt(record.model_copy(update=told), {"seconds": []})  # type: ignore[dict-item]

    def begin(self, plan: Plan, deadline: float | None = None) -> WarmUp:
        """A start of a plan whose data have 16 images to train, and 4 to validate."""
        write_plans([plan], self.files.root)
        (data,) = {run.dataset for run in plan.runs}
        manifest = Manifest(
            source="generated", generated=True, seed=1, valid_fraction=0.2, classes=["a"],
            train_images=16, valid_images=4, items=[],
        )  # fmt: skip
        write_whole(self.files.manifest(data), manifest.model_dump_json())
        session = Session(name="start", began=time.time(), warm_up_run=True, deadline=deadline)
        write_whole(self.files.session("tiny"), session.model_dump_json())
        return WarmUp(plan, self.files, session, self.said.append)


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planted:
    return Planted(tmp_path, monkeypatch)


def test_a_start_warms_up_each_way_of_computing_once_and_one_that_fails_stops_nothing(
    planted: Planted,
) -> None:
    both = {**SIZES, "training.precision": ["fp32", "bf16"]}
    start = planted.begin(plan := tiny_plan(factors=both, replicates=2))
    assert [start.made(run) for run in plan.runs] == [True] * 12
    assert [len(context.paced) for context in planted.made] == [3, 3]
    planted.outcome = "failed"
    other = WarmUp(plan, planted.files, Session(name="other", warm_up_run=True), start.say)
    assert not any(other.made(run) for run in plan.runs)
    assert sum(": failed, " in line for line in planted.said) == 2


def test_a_run_is_foretold_by_its_parts(planted: Planted) -> None:
    """2 s of process, 0.5 s of set-up; four epochs of a quarter, their steps, and validations."""
    start = planted.begin(plan := tiny_plan(factors=SIZES, training=FOUR_EPOCHS))
    assert start.foretold() == {}
    start.made(plan.runs[0])
    steps = {2: 8, 4: 4, 8: 2}
    told = {
        run.key: 2.5 + 4 * (0.25 + steps[run.settings.training.batch_size] + 4 * 0.125 + 0.25)
        for run in plan.runs
    }
    assert start.foretold() == pytest.approx(told)


@pytest.mark.parametrize(
    ("step_seconds", "rung", "told"),
    [
        (1.0, {}, "tiny: at its full length, about 4 min by"),
        (4.0, {"replicates": 2}, "tiny: replicates: 2, about 8 min by"),
        (30.0, {"training.epochs": 2, "replicates": 1}, "replicates: 1, about 14 min by"),
    ],
)
def test_the_longest_rung_that_fits_is_taken_and_else_the_last(
    planted: Planted, step_seconds: float, rung: dict[str, int], told: str
) -> None:
    planted.step_seconds = step_seconds
    planted.begin(tiny_plan(factors=SIZES, training=FOUR_EPOCHS, replicates=3, ladder=LADDER))
    choose_length("tiny", planted.files.root, planted.said.append)
    length = length_of("tiny", planted.files)
    assert length and length.rung == rung
    assert told in planted.said[-1]
    assert "(asked for: 10 min)" in planted.said[-1]


def test_a_rung_sets_what_a_start_does_not_and_the_reduced_size_has_none(tmp_path: Path) -> None:
    write_study(tmp_path, reduced={"training.epochs": 1}, training=FOUR_EPOCHS)

    def read(**config: object) -> tuple[int, int, bool, list[str]]:
        selection = read_selection({"studies": ["tiny"], **config})
        found = read_study("tiny", [tmp_path], selection, {"training.epochs": 2, "replicates": 2})
        return found.training.epochs, found.replicates, found.ladder is not None, [*found.rung]

    assert read() == (2, 2, True, ["training.epochs", "replicates"])
    assert read(overrides={"training.epochs": 3}) == (3, 2, True, ["replicates"])
    assert read(size="reduced") == (1, 1, False, [])


@pytest.mark.parametrize("rung", [{"training.batch_size": 4}, {"replicates": "two"}, {}])
def test_a_rung_changes_the_length_alone(tmp_path: Path, rung: dict[str, object]) -> None:
    write_study(tmp_path, ladder={"minutes": 10, "rungs": [rung] if rung else []})
    with pytest.raises(StudyError, match=r"ladder\.rungs"):
        read_study("tiny", [tmp_path], read_selection({"studies": ["tiny"]}))


def test_a_budget_that_no_block_fits_says_what_one_takes_before_further_warm_up_runs(
    planted: Planted,
) -> None:
    both = {**SIZES, "training.precision": ["fp32", "bf16"]}
    start = planted.begin(plan := tiny_plan(factors=both, replicates=2), time.time() + 20)
    for one in blocks_of(plan, planted.files):
        measure_block("tiny", one.name, planted.files.root, start.say)
    assert [len(context.paced) for context in planted.made] == [3]
    left = "of tiny is left for the next start"
    assert planted.said[-2:] == [
        f"time budget: block 1 of 2 {left} (6 runs): it would take about 59 s, by 3 of 6 "
        "settings; time_budget_minutes=1 makes this block, and so do fewer settings (overrides) "
        "or size=reduced in less",
        f"time budget: block 2 of 2 {left}, too",
    ]
