"""Times of a run: of its phases and steps, and of the parts of its process."""

import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from study.artifacts.samples import Step
from study.config.times import PHASES
from study.training.instruments.clock import mark_warm_up
from study.training.loops.torch import loop as torch_loop
from study.training.loops.torch.batch import Batch, Eager
from tests.conftest import PlantedClock
from tests.unit.training.gloo_ranks import LOOPS
from tests.unit.training.test_inputs import Prepared
from tests.unit.training.test_loops import make_job, tiny_run
from tests.unit.training.test_switches import step_losses


def step(seconds: float, epoch: int = 1) -> Step:
    phases = {f"{phase}_seconds": 0.0 for phase in PHASES} | {"forward_seconds": seconds}
    return Step(epoch=epoch, images=4, warm_up=False, **phases)


@pytest.mark.parametrize(
    ("seconds", "warm"),
    [
        ([1, 1, 1, 1, 1, 1], 1),
        ([9, 5, 2, 1, 1, 1, 1, 1], 3),
        ([9, 9, 9, 9, 1, 1], 3),  # half of the stage at most
        ([1], 1),
        ([5, 1], 1),
        ([1, 1, 1, 9, 1, 1], 1),  # a slow step later is noise, not warm-up
    ],
)
def test_warm_up_is_the_slow_start_and_at_least_the_first_step(
    seconds: list[float], warm: int
) -> None:
    marked = mark_warm_up([step(s) for s in seconds], ["unfrozen"])
    assert [s.warm_up for s in marked] == [True] * warm + [False] * (len(seconds) - warm)


def test_each_stage_warms_up_by_itself() -> None:
    steps = [step(1, 1), step(1, 1), step(3, 2), step(3, 2), step(3, 3), step(3, 3)]
    marked = mark_warm_up(steps, ["frozen", "unfrozen", "unfrozen"])
    assert [s.warm_up for s in marked] == [True, False, True, False, False, False]


def test_a_run_records_its_parts_and_they_fit_into_its_process(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / "results")
    began = time.perf_counter()
    result = prepared.result()
    whole = time.perf_counter() - began
    assert result.timeline and result.measurement and result.reference_workload
    parts = result.timeline.model_dump()
    assert sum(seconds for name, seconds in parts.items() if name != "start_seconds") <= whole
    assert parts["training_seconds"] >= result.measurement.fit_seconds
    assert parts["instruments_seconds"] >= sum(result.reference_workload.before)


SMALL = {"images": 60, "image_size": 32}


def test_a_warm_up_before_a_capture_is_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: PlantedClock
) -> None:
    """A CPU captures nothing: its work pretends to warm up, at its first batch."""

    class Warming(Eager):
        def warm_up(self, batch: Batch) -> bool:
            if cold := not warmed:
                warmed.append(batch)
                clock.pass_by(2.0)
            return cold

    warmed: list[Batch] = []
    monkeypatch.setattr(torch_loop, "Eager", Warming)
    first, *others = LOOPS["torch"](make_job(tmp_path, tiny_run("torch", dataset=SMALL))).steps
    assert first.graph_warm_up_seconds == 2.0 and first.device_transform_seconds == 0.0
    assert {one.graph_warm_up_seconds for one in others} == {0.0}


@pytest.mark.thorough
def test_compilation_is_a_time_of_its_own_and_changes_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training compiles in its first step and validation in its first pass, as long as that takes;
    no other step does. Nothing was compiled before: torch keeps what it compiled in a folder and in
    the process."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    body = (
        "nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 8), nn.Tanh(), nn.Linear(8, classes))"
    )
    (tmp_path / "small_enough.py").write_text(
        f"from torch import nn\ndef net(classes): return {body}\n"
    )
    torch._dynamo.reset()
    training = {"epochs": 2, "batch_size": 8}
    values: dict[str, Any] = {
        "dataset": SMALL,
        "model": {"name": "small_enough:net", "weights": "none"},
    }
    job = make_job(tmp_path, tiny_run(**values, training=training | {"compile": True}))
    before = torch_loop.compile_seconds()
    spent = [before]
    with step_losses() as compiled:
        measured = torch_loop.train(
            replace(
                job, progress=lambda done, total, words: spent.append(torch_loop.compile_seconds())
            )
        )
    assert [after > earlier for earlier, after in pairwise(spent)] == [
        True,
        *[False] * 5,
        True,
        *[False] * 5,
    ]
    assert measured.steps[0].warm_up
    assert measured.compile_seconds == spent[-1] > before
    with step_losses() as losses:
        eager = torch_loop.train(make_job(tmp_path, tiny_run(**values, training=training)))
    assert len(set(losses)) == len(losses) == 12
    assert compiled == pytest.approx(losses, abs=1e-4 * losses[0])
    assert eager.compile_seconds is None
