"""The keys of one run, which of them go together, and what is known of each."""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic.fields import FieldInfo

from study.base.strict import Declared, one_line
from study.config import rules
from study.config.command import Argument, Command, Output, check_arguments, line_alone, words_of
from study.config.keys import Idle, Key, Values, one_of
from study.config.sections import (
    LARGEST_SEED,
    Dataset,
    Device,
    ImageName,
    Limits,
    Loader,
    Model,
    Training,
)

NOT_A_COMMAND = Idle(
    {"command": Values("a command", bool)}, "a training of ours: a command has `arguments`"
)
ARGUMENTS = "arguments."
"""How the dotted key of a placeholder's value begins."""


class Keys(Declared):
    """The keys that decide what a run does, before factors are applied. Any dotted key of them can
    be a factor."""

    device: Annotated[
        Device, Key(words={"cpu": "CPU", "cuda": "GPU"}, tried=False, in_force=["devices"])
    ] = "cpu"
    """The device on which the model is trained."""
    command: Annotated[
        Command | None,
        BeforeValidator(line_alone, json_schema_input_type=Command | str | None),
        Key(tried=False),
    ] = None
    """A program as a run, in place of a training of ours, in any language. A text is its `line`."""
    arguments: Annotated[dict[str, Argument], Key(tried=False)] = {}
    """Values of the placeholders of `command`, by their names. As a factor, a list of values."""
    output: Annotated[
        Output, Key(tried=False, idle=[Idle({"command": one_of(None)}, "a command")])
    ] = Field(default_factory=Output)
    dataset: Annotated[Dataset, Key(identifies="never", idle=[NOT_A_COMMAND])] = Field(
        default_factory=Dataset
    )
    model: Annotated[Model, Key(idle=[NOT_A_COMMAND])] = Field(default_factory=Model)
    training: Annotated[Training, Key(idle=[NOT_A_COMMAND])] = Field(default_factory=Training)
    loader: Annotated[Loader, Key(tried=False, idle=[NOT_A_COMMAND])] = Field(
        default_factory=Loader
    )
    limits: Annotated[Limits, Key(tried=False)] = Field(default_factory=Limits)
    process: Annotated[
        Literal["forked", "fresh"],
        Key(
            words={"forked": "forked process", "fresh": "fresh process"},
            tried=False,
            idle=[NOT_A_COMMAND],
        ),
    ] = "forked"
    """The process of a run. `forked`: from one that has imported torch and done nothing else; each
    start has one for each device and loop. `fresh`: from nothing, with imports of its own. Runs in
    containers, and on systems other than Linux, are always fresh. A record says how its run was
    started."""
    machine: Annotated[
        str | None, Key(words={None: "any machine"}, tried=False, identifies="where it is set")
    ] = Field(None, pattern="^[A-Za-z0-9_-]+$")
    """Class of machine on which the run is made, a name in `machines` of `config/config.yaml`: for
    an executor, such as a cluster's, that has several. none: any machine."""
    environment: Annotated[
        str | None, Key(words={None: "the start's packages"}, tried=False, identifies="never")
    ] = Field(None, pattern=r"\.lock$")
    """Packages with which the run executes on the host, in place of those of the start: the path of
    a lock file, from which an environment is made by uv. As a factor, `environment:
    [requirements.lock, newer.lock]`, it compares versions of the software in the same blocks
    without a container engine."""
    image: Annotated[
        ImageName | None, Key(words={None: "the device's image"}, tried=False, identifies="never")
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
        check_arguments(self.command, self.arguments)
        if self.command:
            self.words("0")
        return self

    @property
    def gpus(self) -> int:
        """Number of GPUs of the run."""
        if self.device != "cuda":
            return 0
        return self.command.gpus if self.command else self.training.replicas

    def values(self, seed: str) -> dict[str, Argument]:
        """Return the value of each placeholder of the command; ``seed`` is that of the run."""
        return {"device": self.device, "seed": seed, **self.arguments}

    def words(self, seed: str) -> list[str]:
        """Return the words of the command."""
        assert self.command
        return words_of(self.command.line, self.values(seed))


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


def known(key: str) -> Key:
    """Return what is known of a dotted key; of a placeholder's value only its name is."""
    return KEYS.get(key, Key())


def setting_keys(command: Command | None = None) -> list[str]:
    """Return every dotted key of a run that may be a factor, in the order of the models' fields:
    those of a training, or of a command."""
    own = [ARGUMENTS + name for name in command.placeholders] if command else []
    keys = [
        key for key in KEYS if not key.startswith(("control", "command", "arguments", "output."))
    ]
    return [*own, *(key for key in keys if not (command and NOT_A_COMMAND in KEYS[key].idle))]


def description(key: str) -> str:
    """Return what the models say of the dotted ``key``, or what a placeholder is."""
    if key.startswith(ARGUMENTS):
        return "an argument of the command"
    described = {name: field.description for name, field, _ in _fields(Keys)}
    return one_line(described[key] or "")


def in_words(key: str) -> str:
    """Return a dotted key in words."""
    return known(key).called or leaf_words(key)


def leaf_words(key: str) -> str:
    """Return the end of a dotted key in words."""
    return key.rpartition(".")[2].replace("_", " ")


def get(settings: BaseModel, key: str) -> Any:
    """Return the value at the dotted ``key`` of ``settings``; None for a placeholder that a factor
    gives its values."""
    if key.startswith(ARGUMENTS):
        return attrgetter("arguments")(settings).get(key.removeprefix(ARGUMENTS))
    return attrgetter(key)(settings)


def decisive(settings: Settings) -> dict[str, Any]:
    """Return the values that decide what a run does and that its key holds, without the names of
    data and weights.

    The key holds their contents in place of their names, which may change.
    """
    values = settings.model_dump()
    if settings.command:
        return _of_a_command(values)
    for section in ("command", "arguments", "output"):
        del values[section]
    for key, mark in KEYS.items():
        section, _, leaf = key.rpartition(".")
        is_usual = get(settings, key) == get(DEFAULTS, key)
        holder = values.get(section, {}) if section else values
        if mark.identifies == "never" or (mark.identifies == "where it is set" and is_usual):
            holder.pop(leaf, None)
    return values


READ_LATER = {"unit", "take", "skip", "what"}
"""Keys of `output` that decide how the numbers of a record are read, and not which there are."""


def _of_a_command(values: dict[str, Any]) -> dict[str, Any]:
    """Return what decides a command. What its files, its program and its packages hold is known by
    their contents."""
    line, read = values["command"], values["output"]
    kept = (
        "device",
        "arguments",
        "limits",
        "seed",
        "control",
        *["machine"] * bool(values["machine"]),
    )
    return {key: values[key] for key in kept} | {
        "command": {key: line[key] for key in ("line", "folder", "variables", "gpus")},
        "output": {key: value for key, value in read.items() if key not in READ_LATER},
    }


def in_small(settings: Settings, trial: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of a run in small: one epoch of each stage, or a few batches.

    With the own values of a ``trial`` only what the run computes counts, and not how fast, or
    where.
    """
    values = {}
    for key, mark in KEYS.items():
        own = get(settings, key)
        if trial is not None and mark.tried is False:
            values[key] = get(DEFAULTS, key)
        elif mark.small is not ...:
            values[key] = min(own, mark.small) if isinstance(own, int) else mark.small
    if settings.command:
        values["arguments"] = {**settings.arguments, **settings.command.small}
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


def flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each value of nested mappings with its dotted key after ``prefix``."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value


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
