"""The keys of one run, which of them go together, and what is known of each."""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator
from pydantic.fields import FieldInfo

from study.base.strict import Declared, one_line
from study.config import rules
from study.config.keys import Idle, Key, one_of
from study.config.sections import (
    LARGEST_SEED,
    OF_A_TRAINING,
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
    device: Annotated[
        Device,
        Key(words={"cpu": "CPU", "cuda": "GPU"}, tried=False, in_force=["devices"]),
    ] = "cpu"
    """The device on which the model is trained."""
    dataset: Annotated[Dataset, Key(identifies="never")] = Field(default_factory=Dataset)
    model: Annotated[Model, Key(idle=[OF_A_TRAINING])] = Field(default_factory=Model)
    training: Training = Field(default_factory=Training)
    loader: Annotated[Loader, Key(tried=False)] = Field(default_factory=Loader)
    inference: Annotated[
        Inference, Key(idle=[Idle({"task": one_of("training")}, "task inference")])
    ] = Field(default_factory=Inference)
    limits: Annotated[Limits, Key(tried=False)] = Field(default_factory=Limits)
    process: Annotated[
        Literal["forked", "fresh"],
        Key(words={"forked": "forked process", "fresh": "fresh process"}, tried=False),
    ] = "forked"
    """The process of a run. `forked`: from one that has imported torch and done nothing else; each
    start has one for each device and loop. `fresh`: from nothing, with imports of its own. Runs in
    containers, and on systems other than Linux, are always fresh. A record says how its run was
    started."""
    machine: Annotated[
        str | None,
        Key(words={None: "any machine"}, tried=False, identifies="where it is set"),
    ] = Field(None, pattern="^[A-Za-z0-9_-]+$")
    """Class of machine on which the run is made, a name in `machines` of `config/config.yaml`: for
    an executor, such as a cluster's, that has several. none: any machine."""
    environment: Annotated[
        str | None,
        Key(words={None: "the start's packages"}, tried=False, identifies="never"),
    ] = Field(None, pattern=r"\.lock$")
    """Packages with which the run executes on the host, in place of those of the start: the path of
    a lock file, from which an environment is made by uv. As a factor, `environment:
    [requirements.lock, newer.lock]`, it compares versions of the software in the same blocks
    without a container engine."""
    image: Annotated[
        ImageName | None,
        Key(words={None: "the device's image"}, tried=False, identifies="never"),
    ] = None
    """Container image in which the run executes, in place of its device's: a reference that the
    engine has or can pull, the path of an archive, or a lock file (`*.lock`) from which one is
    built. As a factor, `image: [requirements.lock, newer.lock]`, it compares versions of the
    software in the same blocks."""
    seed: Annotated[int, Key(small=1)] = Field(1, ge=0, le=LARGEST_SEED)
    """Seed of the order of runs, of random weights and of each run's own seed."""


class Settings(Keys):
    """The keys of one run, with one level of each factor. They go together as
    ``study/config/rules.py`` says."""

    control: Annotated[Literal["first", "second"], Key(small="first", same_work=True)] = "first"
    """Which of its two runs a configuration with a `null_control` is in. Without effect."""

    @model_validator(mode="after")
    def _keys_go_together(self) -> Self:
        rules.check(self)
        return self


def _fields(
    model: type[BaseModel], prefix: str = "", section: Key = Key()
) -> Iterator[tuple[str, FieldInfo, Key]]:
    for name, field in model.model_fields.items():
        mark = next((one for one in field.metadata if isinstance(one, Key)), Key())
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _fields(field.annotation, f"{prefix}{name}.", mark)
        else:
            yield prefix + name, field, mark.within(section)


KEYS = {key: mark for key, _, mark in _fields(Settings)}
"""What is known of every dotted key of a run, in the order of the models' fields."""
DEFAULTS = Settings()


def setting_keys() -> list[str]:
    """Return every dotted key of a run that may be a factor, in the order of the models' fields."""
    return [key for key in KEYS if key != "control"]


def description(key: str) -> str:
    """Return what the models say of the dotted ``key``."""
    described = {name: field.description for name, field, _ in _fields(Keys)}
    return one_line(described[key] or "")


def in_words(key: str) -> str:
    """Return a dotted key in words."""
    return KEYS.get(key, Key()).called or leaf_words(key)


def leaf_words(key: str) -> str:
    """Return the end of a dotted key in words."""
    return key.rpartition(".")[2].replace("_", " ")


def get(settings: BaseModel, key: str) -> Any:
    """Return the value at the dotted ``key`` of ``settings``."""
    return attrgetter(key)(settings)


def decisive(settings: Settings) -> dict[str, Any]:
    """Return the values that decide what a run does and that its key holds, without the names of
    data and weights.

    The key holds their contents in place of their names, which may change.
    """
    values = settings.model_dump()
    if settings.task == "training":
        del values["inference"]
    for key, known in KEYS.items():
        section, _, leaf = key.rpartition(".")
        is_usual = get(settings, key) == get(DEFAULTS, key)
        if known.identifies == "never" or (known.identifies == "where it is set" and is_usual):
            holder = values[section] if section else values
            del holder[leaf]
    return values


def in_small(settings: Settings, trial: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of a run in small: one epoch of each stage, or a few batches.

    With the own values of a ``trial`` only what the run computes counts, and not how fast, or
    where.
    """
    values = dict[str, Any]()
    for key, known in KEYS.items():
        own = get(settings, key)
        if trial is not None and known.tried is False:
            values[key] = get(DEFAULTS, key)
        elif known.small is not ...:
            values[key] = min(own, known.small) if isinstance(own, int) else known.small
    return Settings.model_validate(with_values(settings.model_dump(), values | dict(trial or {})))


def few_images(settings: Settings, train: int, valid: int, steps: int = 3) -> tuple[int, int]:
    """Return on how many of its images a run in small trains, and is validated: a few full steps
    and the last one of an epoch; two batches and the last one of all.

    With fp16 the first steps may train nothing, until the gradients' scale fits.
    """
    training = settings.training
    size = training.global_batch_size
    if training.precision == "fp16":
        steps *= 4
    last = 0 if training.drop_last else train % size
    return min(train, steps * training.step_images + last), min(valid, 2 * size + valid % size)


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
