"""A small study of every kind, with planted times, whose first screens are looked at and counted.

    python -m tests.unit.analysis.kinds FOLDER

writes FOLDER/<kind>/report.html for each.
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.run import Run
from study.base.files import write_new
from tests.conftest import tiny_plan
from tests.unit.analysis.planted import KEYS, changed, with_measured
from tests.unit.analysis.test_report import finish, with_gpu
from tests.unit.artifacts.test_records import make_record

BOTH = ["cpu", "cuda"]
SIZES = [16, 32, 64, 128]
RESNET = {"name": "resnet18", "weights": "none"}
DATA = {"source": "generated", "images": 640, "image_size": 32}
Time = Callable[[Run], float]


def varied(*devices: str, **levels: list[Any]) -> dict[str, Any]:
    """The factors of a study; a key of two parts has its short name."""
    return {"factors": {"device": [*devices]} | {KEYS[key]: one for key, one in levels.items()}}


def _size(run: Run) -> int:
    return run.settings.training.batch_size


def _kind(run: Run) -> str:
    return run.settings.loader.kind


CURVE = varied("cpu", size=SIZES)
LOADERS = ["workers", "device"]
GAINS: dict[object, float] = {"device": 5.9, "channels_last": 1.3, "bf16": 1 / 1.05}
KINDS: dict[str, tuple[dict[str, Any], Time]] = {
    "curve": (CURVE, lambda run: 14.2 + 380 / _size(run)),
    "tie": (CURVE, lambda run: 20 if _size(run) < 64 else 10),
    "contrast": (
        varied(*BOTH, kind=LOADERS) | {"contrast": "device", "curve": None},
        lambda run: 38 if run.settings.device == "cpu" else 2.4 if _kind(run) == "device" else 6.4,
    ),
    "ways": (
        varied("cuda", loop=["fastai", "torch"], size=SIZES) | {"loader": {"kind": "workers"}},
        lambda run: (9.0 if run.settings.training.loop == "fastai" else 6.0) + 40 / _size(run),
    ),
    "factorial": (
        varied(
            "cuda", precision=["auto", "bf16"], layout=["contiguous", "channels_last"], kind=LOADERS
        )
        | {"effects": True, "curve": None},
        lambda run: 8 / math.prod(GAINS.get(level, 1) for level in run.setting.levels.values()),
    ),
    "null control": (
        varied("cpu") | {"null_control": True, "curve": None, "replicates": 6},
        lambda run: 7.0,
    ),
    "no answer": (CURVE | {"replicates": 1}, lambda run: 9.0),
    "failed": (CURVE, lambda run: 14.2 + 380 / _size(run)),
    "nothing": (CURVE, lambda run: 1.0),
    "absent": (varied("cuda", size=SIZES), lambda run: 1.0),
    "begun": (
        varied(*BOTH, size=SIZES) | {"contrast": "device", "replicates": 4},
        lambda run: (20.0 if run.settings.device == "cpu" else 2.0) + 40 / _size(run),
    ),
}
"""What each study changes, and the seconds of a run before the noise."""
NOISE = {"tie": 0.25}


def _outcome(kind: str, run: Run) -> str:
    if kind == "failed" and _size(run) == 128:
        return "out_of_memory"
    return "failed" if kind == "nothing" else "ok"


def plan_of(kind: str) -> Plan:
    """The plan of a kind's study, whose runs a machine with a GPU can make."""
    changes, _ = KINDS[kind]
    asked = f"How long does it take, in a study of the kind {kind}?"
    own = {"title": kind.capitalize(), "question": asked, "model": RESNET, "dataset": DATA}
    plan = tiny_plan(**{"replicates": 3} | own | changes)
    return plan if kind == "absent" else with_gpu(plan)


def measured(kind: str, results: Path) -> Plan:
    """Write the records of a kind's study and all that follows from them, with its page."""
    plan, rng = plan_of(kind), np.random.default_rng(3)
    _, seconds = KINDS[kind]
    for number, run in enumerate(plan.runs):
        if not run.unavailable and not (kind == "begun" and run.block > 2):
            noise = math.exp(rng.normal(0, NOISE.get(kind, 0.01)))
            record = make_record(plan, number, _outcome(kind, run), seconds(run) * noise)
            write_new(results / plan.name / "records" / run.file, learned(record).model_dump_json())
    finish(plan, results)
    return plan


def learned(record: Record) -> Record:
    """The record, whose network learned, and whose parts add up to its time."""
    if record.measurement is None:
        return record
    measured, whole = record.measurement, record.measurement.fit_seconds
    ends = {"train_seconds": 0.9 * whole, "valid_seconds": 0.1 * whole}
    steps = {"forward_seconds": 0.1, "backward_seconds": 0.2, "data_wait_seconds": 0.1}
    return with_measured(
        record,
        epochs=changed(measured.epochs, accuracy=0.97, **ends),
        steps=changed(measured.steps, **{name: one * whole for name, one in steps.items()}),
    )


def main() -> None:
    """Write the page of every kind."""
    for kind in KINDS:
        measured(kind, Path(sys.argv[1]) / kind.replace(" ", "-"))


if __name__ == "__main__":
    main()
