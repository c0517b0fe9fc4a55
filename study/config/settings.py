"""The keys of one run, and which of them go together."""

from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from study.base.strict import Strict
from study.config.networks import is_transfer, misfit
from study.config.sections import Dataset, Device, Inference, Limits, Loader, Model, Training

STOCK_FASTAI = (
    ("training", "optimizer", "adamw"),
    ("training", "gradient_accumulation", 1),
    ("training", "validation", "epoch"),
    ("loader", "prefetch_factor", None),
)
"""(section, key, value): the only value that stock fastai takes for each of these keys."""


class Keys(Strict):
    """The keys that decide what a run does, before factors are applied. Any dotted key of them can be a factor."""

    task: Literal["training", "inference"] = Field(
        "training",
        description="The task that is timed. `inference`: the model is trained first, and then classifies images as "
        "the section `inference` says.",
    )
    device: Device = Field("cpu", description="The device on which the model is trained.")
    dataset: Dataset = Field(default_factory=lambda: Dataset.model_validate({}))
    model: Model = Field(default_factory=lambda: Model.model_validate({}))
    training: Training = Field(default_factory=lambda: Training.model_validate({}))
    loader: Loader = Field(default_factory=lambda: Loader.model_validate({}))
    inference: Inference = Field(default_factory=lambda: Inference.model_validate({}))
    limits: Limits = Field(default_factory=lambda: Limits.model_validate({}))
    control: Literal["first", "second"] = Field(
        "first",
        description="A key without effect. `null_control` makes it a factor, so that each configuration is run twice.",
    )
    seed: int = Field(1, ge=0, description="Seed of the order of runs, of random weights and of each run's own seed.")


class Settings(Keys):
    """The keys of one run, with one level of each factor. Their values must be compatible with each other."""

    @model_validator(mode="after")
    def _folder_has_a_path(self) -> Self:
        if self.dataset.source == "folder" and not self.dataset.path:
            raise ValueError("dataset.path: None is not allowed with dataset.source folder: name the folder")
        return self

    @model_validator(mode="after")
    def _a_network_is_trained_whole_from_weights_of_its_own(self) -> Self:
        name, frozen = self.model.name, self.training.freeze_epochs
        if is_transfer(name):
            return self
        if self.model.weights == "imagenet":
            raise ValueError(
                f"model.weights: 'imagenet' is not allowed with model.name {name}, which is not torchvision's: none, "
                "or the path of a weights file"
            )
        if frozen:
            raise ValueError(
                f"training.freeze_epochs: {frozen} is not allowed with model.name {name}, which is trained whole: 0"
            )
        return self

    @model_validator(mode="after")
    def _a_search_has_terms_or_a_manifest(self) -> Self:
        if self.dataset.source == "search" and not self.dataset.terms and not self.dataset.manifest:
            raise ValueError(
                "dataset.terms: None is not allowed with dataset.source search: give a term for each class, such as "
                "{bird: bird photo, forest: forest photo}, or the manifest of an earlier search as dataset.manifest"
            )
        return self

    @model_validator(mode="after")
    def _a_network_fits_the_images(self) -> Self:
        trouble = misfit(self.model.name, self.dataset.channels, self.dataset.image_size)
        if trouble:
            raise ValueError(trouble)
        return self

    @model_validator(mode="after")
    def _stock_fastai_has_its_own_loader(self) -> Self:
        if self.training.loop == "fastai" and self.loader.kind != "workers":
            raise ValueError(
                f"loader.kind: {self.loader.kind!r} is not allowed with training.loop fastai, "
                "which brings its own loader: workers"
            )
        return self

    @model_validator(mode="after")
    def _many_processes_train(self) -> Self:
        if self.training.strategy != "single" and self.loader.kind == "alone":
            raise ValueError(
                f"loader.kind: 'alone' is not allowed with training.strategy {self.training.strategy}, because "
                "nothing is trained: workers or device, or training.strategy single"
            )
        if self.training.strategy != "single" and self.training.compile:
            raise ValueError(
                f"training.compile: True is not allowed with training.strategy {self.training.strategy}: false"
            )
        return self

    @model_validator(mode="after")
    def _only_our_loop_compiles(self) -> Self:
        if self.training.compile and (self.training.loop == "fastai" or self.loader.kind == "alone"):
            raise ValueError(
                "training.compile: True is not allowed with training.loop fastai, which is stock, nor with loader.kind "
                "alone, which trains nothing: false"
            )
        return self

    @model_validator(mode="after")
    def _our_loop_trains_what_is_asked_afterwards(self) -> Self:
        if self.task == "inference":
            for key, given, allowed in (
                ("training.loop", self.training.loop, ("torch",)),
                ("training.strategy", self.training.strategy, ("single",)),
                ("training.compile", self.training.compile, (False,)),
                ("loader.kind", self.loader.kind, ("workers", "device")),
            ):
                if given not in allowed:
                    raise ValueError(
                        f"{key}: {given!r} is not allowed with task inference: {' or '.join(map(str, allowed))}"
                    )
        return self

    @model_validator(mode="after")
    def _a_precision_is_for_its_device(self) -> Self:
        precision = self.training.precision
        if self.device == "cpu" and precision == "tf32":
            raise ValueError(
                "training.precision: 'tf32' is not allowed on device cpu, which has no TF32: auto, fp32, bf16, fp16"
            )
        if self.training.loop == "fastai" and self.device == "cpu" and precision not in ("auto", "fp32"):
            raise ValueError(
                f"training.precision: {precision!r} is not allowed with training.loop fastai on device cpu, where "
                "fastai always trains in fp32: auto, fp32"
            )
        return self

    @model_validator(mode="after")
    def _stock_fastai_does_not_do_everything(self) -> Self:
        if self.training.loop != "fastai":
            return self
        for section, key, stock in STOCK_FASTAI:
            given = getattr(getattr(self, section), key)
            if given != stock:
                raise ValueError(
                    f"{section}.{key}: {given!r} is not allowed with training.loop fastai, which is stock: "
                    f"{'none' if stock is None else stock}"
                )
        allowed = ("one_cycle",) if is_transfer(self.model.name) else ("one_cycle", "constant")
        if self.training.schedule not in allowed:
            raise ValueError(
                f"training.schedule: {self.training.schedule!r} is not allowed with training.loop fastai and "
                f"model.name {self.model.name}: {', '.join(allowed)}"
            )
        return self

    @model_validator(mode="after")
    def _only_workers_prefetch(self) -> Self:
        loader = self.loader
        if loader.kind != "device" and loader.workers == 0:
            for key, given, stock in (
                ("prefetch_factor", loader.prefetch_factor, None),
                ("persistent_workers", loader.persistent_workers, False),
            ):
                if given != stock:
                    raise ValueError(
                        f"loader.{key}: {given} is not allowed with loader.workers 0, which starts no worker: "
                        f"{'none' if stock is None else 'false'}, or at least 1 worker"
                    )
        return self


def setting_keys(model: type[BaseModel] = Keys, prefix: str = "") -> list[str]:
    """Return every dotted key of ``model``, in the order of its fields, each with ``prefix`` before it."""
    keys: list[str] = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += setting_keys(field.annotation, f"{prefix}{name}.")
        else:
            keys.append(prefix + name)
    return keys


def get(settings: BaseModel, key: str) -> Any:
    """Return the value at the dotted ``key`` of ``settings``."""
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def with_values(settings: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the nested ``settings`` with each dotted key of ``values`` set."""
    result = {key: dict(value) if isinstance(value, dict) else value for key, value in settings.items()}
    for key, value in values.items():
        *sections, leaf = key.split(".")
        target = result
        for section in sections:
            inner = target.get(section)
            target[section] = dict(inner) if isinstance(inner, dict) else {}
            target = target[section]
        target[leaf] = value
    return result
