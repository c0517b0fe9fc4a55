"""The keys of one run, and which of them go together."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator
from pydantic.fields import FieldInfo

from study.base.strict import Declared, one_line
from study.config import rules
from study.config.sections import (
    LARGEST_SEED,
    Dataset,
    Device,
    ImageName,
    Inference,
    Limits,
    Loader,
    Model,
    Training,
)


class Keys(Declared):
    """The keys that decide what a run does, before factors are applied. Any dotted key of them can
    be a factor."""

    task: Literal["training", "inference"] = "training"
    """The task that is timed. `inference`: the model is trained first, and then classifies images
    as the section `inference` says."""
    device: Device = "cpu"
    """The device on which the model is trained."""
    dataset: Dataset = Field(default_factory=Dataset)
    model: Model = Field(default_factory=Model)
    training: Training = Field(default_factory=Training)
    loader: Loader = Field(default_factory=Loader)
    inference: Inference = Field(default_factory=Inference)
    limits: Limits = Field(default_factory=Limits)
    process: Literal["forked", "fresh"] = "forked"
    """The process of a run. `forked`: from one that has imported torch and done nothing else; each
    start has one for each device and loop. `fresh`: from nothing, with imports of its own. Runs in
    containers, and on systems other than Linux, are always fresh. A record says how its run was
    started."""
    machine: str | None = Field(None, pattern="^[A-Za-z0-9_-]+$")
    """Class of machine on which the run is made, a name in `machines` of `config/config.yaml`: for
    an executor, such as a cluster's, that has several. none: any machine."""
    environment: str | None = Field(None, pattern=r"\.lock$")
    """Packages with which the run executes on the host, in place of those of the start: the path of
    a lock file, from which an environment is made by uv. As a factor, `environment:
    [requirements.lock, newer.lock]`, it compares versions of the software in the same blocks
    without a container engine."""
    image: ImageName | None = None
    """Container image in which the run executes, in place of its device's: a reference that the
    engine has or can pull, the path of an archive, or a lock file (`*.lock`) from which one is
    built. As a factor, `image: [requirements.lock, newer.lock]`, it compares versions of the
    software in the same blocks."""
    seed: int = Field(1, ge=0, le=LARGEST_SEED)
    """Seed of the order of runs, of random weights and of each run's own seed."""


class Settings(Keys):
    """The keys of one run, with one level of each factor. They go together as
    ``study/config/rules.py`` says."""

    control: Literal["first", "second"] = "first"
    """Which of its two runs a configuration with a `null_control` is in. Without effect."""

    @model_validator(mode="after")
    def _keys_go_together(self) -> Self:
        rules.check(self)
        return self


def _fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def setting_keys() -> list[str]:
    """Return every dotted key of a run, in the order of the models' fields."""
    return [key for key, _ in _fields(Keys)]


def description(key: str) -> str:
    """Return what the models say of the dotted ``key``."""
    return one_line(dict(_fields(Keys))[key].description or "")


def get(settings: BaseModel, key: str) -> Any:
    """Return the value at the dotted ``key`` of ``settings``."""
    return attrgetter(key)(settings)


def decisive(settings: Settings) -> dict[str, Any]:
    """Return the values that decide what a run does and that its key holds, without the names of
    data and weights.

    The key holds their contents in place of their names, which may change.
    """
    values = settings.model_dump()
    # ends a run, but does not change one that it does not end
    del values["limits"]["timeout_seconds"]
    if settings.task == "training":
        del values["inference"]
    values["dataset"] = {
        "image_size": settings.dataset.image_size,
        "channels": settings.dataset.channels,
    }
    del values["model"]["weights"]
    # what decides them is in the key, and their names may change
    del (values["image"], values["environment"])
    if settings.machine is None:  # records from before there was a choice
        del values["machine"]
    if not settings.training.deterministic:  # likewise
        del values["training"]["deterministic"]
    return values


def loops(settings: Settings) -> list[str]:
    """Return the loops that a run enters, the outermost last; each is a folder of
    ``study/training/loops``."""
    if settings.task == "inference":  # a network is trained, and then asked
        return ["torch", "inference"]
    return [settings.training.loop]


def with_values(settings: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the nested ``settings`` with each dotted key of ``values`` set."""
    result = dict(settings)
    for key, value in values.items():
        *sections, leaf = key.split(".")
        target = result
        for section in sections:
            inner = target.get(section)
            target[section] = dict(inner) if isinstance(inner, dict) else {}
            target = target[section]
        target[leaf] = value
    return result
