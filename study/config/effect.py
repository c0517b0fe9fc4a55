"""The table of keys that have no effect where they stand, and its check: what is asked for changes
what a run does.

A key that a study's file or a start gives has an effect in some run, and two levels of a factor
make two different runs. ``make schema`` prints the table into ``config/README.md``.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from study.base.errors import StudyError
from study.config.rules import (
    ALONE,
    DIGITS,
    NO_GPU,
    Values,
    When,
    all_hold,
    broken,
    one_of,
    values_of,
)
from study.config.sections import Inference
from study.config.settings import Keys, Settings, get, with_values
from study.config.study import StudyFile


@dataclass(frozen=True)
class Idle:
    """One row: ``key`` changes nothing while every key of ``when`` has one of its values."""

    key: str
    when: When
    cure: str
    """What makes the key effective."""

    def holds_everywhere(self, study: StudyFile) -> bool:
        """Return whether the key is without effect at every level of the factors of a study."""
        return all(
            all(map(values.hold, study.factors.get(key, [get(study, key)])))
            for key, values in self.when.items()
        )

    def error(self, value: Any, settings: BaseModel, source: str) -> StudyError:
        """Return the error: the key with its value, the other keys with theirs, and what makes the
        key effective."""
        why = f"it has no effect there, and has one with {self.cure}"
        return StudyError(
            source=source,
            key=self.key,
            value=value,
            context=values_of(self.when, settings),
            why=why,
        )


ON_DEVICE = {"loader.kind": one_of("device")}
SINGLE = {"training.strategy": one_of("single")}
ONE_PROCESS = {"training.processes": one_of(1)}
OWN_SPLIT = {"dataset.source": one_of("cifar10", "mnist")}
FOUND = {"dataset.source": one_of("folder", "cifar10", "mnist")}
GENERATED = {"dataset.source": one_of("generated")}
ONE_EPOCH = {"training.epochs": one_of(1), "training.freeze_epochs": one_of(0)}
JPEG = "images that are JPEG files"
A_LOADER = "loader.kind workers, threads or alone"
NOT_ALONE = "another loader.kind: `alone` trains nothing"

IDLE: tuple[Idle, ...] = (
    Idle("loader.workers", ON_DEVICE, A_LOADER),
    Idle("loader.prefetch_factor", ON_DEVICE, A_LOADER),
    Idle("loader.persistent_workers", ON_DEVICE, "loader.kind workers or alone"),
    Idle(
        "loader.persistent_workers", ONE_EPOCH, "more epochs: the workers stay from one to the next"
    ),
    Idle("loader.pin_memory", ON_DEVICE, A_LOADER),
    Idle("loader.pin_memory", NO_GPU, "device cuda"),
    Idle("loader.decoder", {"dataset.source": one_of("cifar10", "mnist", "digits")}, JPEG),
    Idle(
        "loader.decoder",
        GENERATED | {"dataset.image_size": Values("up to 32", lambda size: size <= 32)},
        JPEG,
    ),
    Idle(
        "loader.decoder",
        GENERATED | {"dataset.classes": Values("3 and more", lambda count: count > 2)},
        JPEG,
    ),
    Idle("loader.decoder", GENERATED | {"dataset.channels": one_of(1)}, JPEG),
    Idle("training.batch_size_is", ONE_PROCESS, "training.processes 2 and more"),
    Idle("training.processes", SINGLE, "training.strategy ddp or ddp_two_nodes"),
    Idle("training.batch_size_is", SINGLE, "training.strategy ddp or ddp_two_nodes"),
    Idle(
        "training.reference_batch_size",
        {"training.learning_rate_rule": one_of("constant")},
        "training.learning_rate_rule linear or square_root",
    ),
    Idle("training.validation", ONE_EPOCH, "more epochs"),
    Idle("training.cudnn_benchmark", NO_GPU, "device cuda"),
    Idle(
        "training.cudnn_benchmark",
        {"training.deterministic": one_of(True)},
        "training.deterministic false",
    ),
    *(
        Idle(f"training.{key}", ALONE, NOT_ALONE)
        for key in (
            "optimizer",
            "schedule",
            "learning_rate",
            "learning_rate_rule",
            "precision",
            "cudnn_benchmark",
        )
    ),
    *(Idle(f"model.{key}", ALONE, NOT_ALONE) for key in ("name", "weights")),
    *(
        Idle(f"inference.{key}", {"task": one_of("training")}, "task inference")
        for key in Inference.model_fields
    ),
    Idle(
        "inference.calibration_images",
        {"inference.precision": one_of("fp32", "bf16", "fp32_onnx")},
        "inference.precision int8",
    ),
    Idle(
        "dataset.path",
        {"dataset.source": one_of("generated", "digits")},
        "dataset.source folder, cifar10 or mnist",
    ),
    Idle("dataset.classes", FOUND, "dataset.source generated"),
    Idle("dataset.images", FOUND, "dataset.source generated or digits"),
    Idle("dataset.valid_fraction", OWN_SPLIT, "dataset.source generated, folder or digits"),
    Idle("dataset.seed", OWN_SPLIT, "dataset.source generated or folder"),
    Idle("dataset.seed", DIGITS, "dataset.source generated or folder"),
)
"""The rows in the order in which a study's keys are checked."""
DEFAULTS = Keys()


def check_given(
    study: StudyFile, asked: Mapping[str, Any], settled: Collection[str], source: str
) -> None:
    """Raise :class:`StudyError` for a key of ``asked`` that has no effect in any run of the study.

    A row counts unless one of the keys that make it hold is among those in ``settled``: what a
    start sets may leave a key of the file without effect.
    """
    for row in IDLE:
        value, default = asked.get(row.key), get(DEFAULTS, row.key)
        if value in (None, default, [default]) or row.when.keys() & {*settled}:
            continue
        if row.holds_everywhere(study):
            raise row.error(value, study, source)


def check_factors(factors: Collection[str], every: Iterable[Settings], source: str) -> None:
    """Raise :class:`StudyError` if two settings of a study differ in nothing but factors without
    effect."""
    rows = [row for row in IDLE if row.key in factors]
    seen: dict[tuple[Any, ...], Settings] = {}
    for settings in every if rows else ():
        idle = {row.key: row for row in rows if all_hold(row.when, settings)}
        other = seen.setdefault(
            tuple(None if key in idle else (get(settings, key),) for key in factors), settings
        )
        for key in idle if other is not settings else ():
            if get(other, key) != get(settings, key):
                raise idle[key].error([get(other, key), get(settings, key)], settings, source)


def allows(runs: Iterable[Settings], key: str, level: Any, asked: Collection[str]) -> bool:
    """Return whether runs may have another ``level`` of a key, which has an effect there and leaves
    no key of ``asked`` without one."""
    if any(row.key in asked and key in row.when and row.when[key].hold(level) for row in IDLE):
        return False
    values = [with_values(run.model_dump(exclude={"control"}), {key: level}) for run in runs]
    changed = [Keys.model_validate(one) for one in values]
    own = [row.when for row in IDLE if row.key == key]
    idle = any(all(all_hold(when, one) for one in changed) for when in own)
    return not idle and not any(any(broken(one)) for one in changed)
