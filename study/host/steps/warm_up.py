"""The warm-up runs of a start: on each machine and device, each way of computing and shape once
before a block counts.

A process leaves nothing to the next but what the machine keeps: files in memory, the driver's
compiled kernels, the clocks. The first warm-up run of a device is a whole run, which reads all
images. Each other is one in small: an epoch of few steps reaches each kernel of its shape.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record_store import Session, read_record
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.base.files import digest
from study.base.privacy import node
from study.config.settings import Settings, with_values
from study.host.steps.attempt import RunContext, attempt
from study.host.supervise import new_log


def in_small(settings: Settings) -> Settings:
    """Return the settings of a run in small: one epoch of each stage, or a few batches.

    Those of two runs are equal if they compute in the same way with the same shapes.
    """
    asked, training = settings.inference, settings.training
    values: dict[str, Any] = {
        "training.epochs": 1,
        "training.freeze_epochs": min(training.freeze_epochs, 1),
        "training.target_accuracy": None,
        "inference.batches": min(asked.batches, 3),
        "inference.warm_up_batches": min(asked.warm_up_batches, 1),
        "inference.calibration_images": min(asked.calibration_images, 8),
        "loader.workers": "auto",
        "loader.prefetch_factor": None,
        "loader.persistent_workers": False,
        "seed": 1,
        "control": "first",
    }
    return Settings.model_validate(with_values(settings.model_dump(), values))


def warm_up(
    plan: Plan, run: Run, results: Path, session: Session, say: Callable[[str], None]
) -> bool:
    """Return whether the warm-up run for ``run`` succeeded on this machine in this start; without
    one, execute it.

    Its record lies in a folder of its own. If it fails, or cannot be started, that is said, and the
    runs go on.
    """
    if not session.warm_up_run:
        return False
    files, device, settings = Results(results), run.settings.device, in_small(run.settings)
    path = files.warm_up_run(
        session.name, node(), device, digest([run.image, settings.model_dump()])
    )
    small = any(path.parent.glob(files.warm_up_run(session.name, node(), device, "*").name))
    title = f"warm-up run on {device}, like {run.name}{' in small' if small else ''}"
    try:
        if not path.exists():
            like = run.model_copy(update={"settings": settings}) if small else run
            with new_log(files.log("warm_up_runs", path.stem)) as file:
                tried = attempt(RunContext(plan, like, results, session, title, file, small=small))
            record = tried.keep(path, path.with_suffix(".parquet"))
            told = "" if record.message is None else f" ({record.message})"
            say(f"{title}: {record.outcome}, {record.process_seconds:.1f} s{told}; in no number")
        return read_record(path).outcome == "ok"
    except StudyError as error:
        say(f"warm-up run on {device}: {error}")
        return False
