"""The models of a study file and of ``config/config.yaml``: every key, its unit, its default, what is allowed.

Values only: ``study/load.py`` reads the files and turns what is wrong into one line.
"""

import re
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from study.networks import NETWORKS, UNFIT, is_own, is_transfer, misfit

Device = Literal["cpu", "cuda"]
Total = Literal[
    "fit_seconds",
    "blog_seconds",
    "train_seconds",
    "epoch_seconds",
    "valid_seconds",
    "step_seconds",
    "thousand_images_seconds",
]
TOTALS_OF_INFERENCE: tuple[Total, ...] = ("thousand_images_seconds",)
Precision = Literal["auto", "fp32", "tf32", "bf16", "fp16"]

STOCK_FASTAI = (
    ("training", "optimizer", "adamw"),
    ("training", "gradient_accumulation", 1),
    ("training", "validation", "epoch"),
    ("loader", "prefetch_factor", None),
)
"""Keys with the one value that a tutorial of fastai follows."""


class Strict(BaseModel):
    """No unknown key, no silent conversion, no change after it was checked."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Dataset(Strict):
    """Which images, and how they are split. Keys that a source has no use for are ignored by it."""

    source: Literal["generated", "folder", "search", "cifar10", "mnist"] = Field(
        "generated",
        description="`generated`: drawn from a seed, no network. `folder`: your own photographs, one "
        "subfolder per class. `search`: what an image search finds for `terms`, or again what `manifest` lists. "
        "`cifar10`, `mnist`: through torchvision, from disk where present.",
    )
    path: str | None = Field(
        None,
        description="`folder`: the folder that holds one subfolder per class. `cifar10`, `mnist`: the "
        "folder as torchvision keeps it; without it the data are downloaded under `results/data`.",
    )
    classes: int = Field(2, ge=2, le=1000, description="`generated`: how many classes to draw.")
    images: int = Field(
        1030,
        ge=4,
        description="How many images, all classes together, as many of each. `generated` draws them; `search` "
        "downloads so many if it finds them, and with a `manifest` all that it lists.",
    )
    terms: dict[str, str] | None = Field(
        None,
        description="`search`: what to search for, by class, such as `{bird: bird photo, forest: forest photo}`. "
        "Not needed with a `manifest`.",
    )
    manifest: str | None = Field(
        None,
        min_length=1,
        description="`search`: the `manifest.json` that an earlier search left. Its pictures are downloaded again from "
        "their URLs and compared by checksum; nothing is searched for.",
    )
    max_size: int = Field(
        400,
        ge=32,
        le=4096,
        description="`search`: larger pictures are shrunk until the longer side has so many pixels, as the fastai "
        "course does.",
    )
    private_addresses: bool = Field(
        False,
        description="`search`: also download from servers that only the local network reaches.",
    )
    channels: Literal[1, 3] = Field(3, description="Colour channels of the images that the model sees.")
    image_size: int = Field(
        192,
        ge=8,
        le=4096,
        description="Side of the square that each image is squished to, in pixels. `generated` draws photographs "
        "for two classes in colour above 32 pixels, and patterns of this size otherwise.",
    )
    valid_fraction: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="Share of each class that is held out for validation (`cifar10` and `mnist` keep their own).",
    )
    seed: int = Field(42, ge=0, description="Seed of the drawing and of the split.")

    @field_validator("terms", mode="before")
    @classmethod
    def _terms_are_a_mapping(cls, value: Any) -> Any:
        if value is None or isinstance(value, dict):
            return value
        raise ValueError(
            f"dataset.terms: {value!r} is not allowed: give a term for each class, such as "
            "{bird: bird photo, forest: forest photo}"
        )

    @model_validator(mode="after")
    def _terms_are_of_two_classes_whose_names_can_be_folders(self) -> Self:
        if self.terms is None:
            return self
        if len(self.terms) < 2:
            raise ValueError(f"terms: {self.terms} is not allowed: at least two classes are needed")
        for name, term in self.terms.items():
            if not is_folder_name(name):
                raise ValueError(
                    f"terms: {name!r} is not allowed as a class: no folder could have that name everywhere"
                )
            if not term.strip():
                raise ValueError(f"terms.{name}: {term!r} is not allowed: say what to search for")
        return self

    @property
    def photographs(self) -> bool:
        """Whether ``generated`` draws photographs as JPEG files (birds and woodland), else small arrays."""
        return self.classes == 2 and self.channels == 3 and self.image_size > 32


class Model(Strict):
    """Which network, starting from which weights."""

    name: str = Field(
        "resnet18",
        min_length=1,
        description="A classification model of torchvision that takes images of `dataset.image_size`, by its name; not "
        f"{', '.join(f'`{name}`' for name in UNFIT)}, which have auxiliary outputs or a head that is no plain linear "
        f"layer. Or a network of a published document: {', '.join(f'`{name}`' for name in NETWORKS)}. Or your own as "
        "`package.module:factory`, importable from the folder where the study is started, as what it imports from "
        "there, and called with `classes=...`. The last two are trained whole; their images keep their channels, and "
        "where a document says nothing else pixels lie in -1 to 1.",
    )
    weights: str = Field(
        "imagenet",
        min_length=1,
        description="`imagenet`: torchvision's weights, downloaded once and checked. `none`: random weights from "
        "the study's seed. Anything else is a path to a state dict (`.pt`, `.pth` or `.safetensors`). A network that "
        "is not torchvision's has no ImageNet weights.",
    )

    @model_validator(mode="after")
    def _an_own_model_is_an_import_path(self) -> Self:
        if is_own(self.name) and not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", self.name):
            raise ValueError(f"name: {self.name!r} is not allowed: a model of your own is package.module:factory")
        return self


class Training(Strict):
    """The schedule: freeze, train the head, unfreeze, train everything."""

    loop: Literal["fastai", "torch"] = Field(
        "torch",
        description="`fastai`: stock `vision_learner(...).fine_tune(...)`; a model that is not torchvision's by "
        "`Learner(...).fit_one_cycle(...)`, or with `schedule: constant` by `.fit(...)`. `torch`: the same, bare.",
    )
    freeze_epochs: int = Field(1, ge=0, le=10_000, description="Epochs with the body frozen.")
    epochs: int = Field(3, ge=1, le=10_000, description="Epochs with everything trained.")
    batch_size: int = Field(
        64, ge=1, description="Images per step, or per micro-batch of `gradient_accumulation`. Never changed silently."
    )
    batch_size_is: Literal["global", "replica"] = Field(
        "global",
        description="Whose `batch_size` it is where many processes train: of all of them together, or of each.",
    )
    strategy: Literal["single", "ddp", "ddp_two_nodes"] = Field(
        "single",
        description="`single`: one process. `ddp`: as many as `processes`, each with a replica of the model and a "
        "shard of every batch, their gradients averaged in each step (gloo on a CPU, nccl on GPUs). `ddp_two_nodes`: "
        "the same, started as two nodes that find each other, on this machine. Batch normalisation uses the statistics "
        "of each replica's own shard.",
    )
    processes: int | Literal["auto"] = Field(
        "auto",
        description="`ddp`: processes in all, each on a GPU of its own; on a CPU they share it. `auto`: one for each "
        "GPU, two on a CPU, or the largest number below that shares every batch evenly: of 3 GPUs 2 for a batch of "
        "1000; of two nodes as many on each. Where the GPUs are away it stays what the study's last plan had, so that "
        "its records are found. `single` is one.",
    )
    gradient_accumulation: int = Field(
        1,
        ge=1,
        le=10_000,
        description="Micro-batches whose gradients are added up before the optimizer's step: a step then sees as many "
        "times `batch_size` images. Batch normalisation still sees one micro-batch at a time.",
    )
    optimizer: Literal["adamw", "adam", "sgd"] = Field(
        "adamw",
        description="`adamw`: with fastai's constants, decay 0.01 but not of normalisation and biases. `adam`: torch's "
        "own defaults, no decay. `sgd`: momentum 0.9, no decay.",
    )
    schedule: Literal["one_cycle", "constant", "step", "cosine"] = Field(
        "one_cycle",
        description="Of the learning rate in each stage. `one_cycle`: fastai's, of the momentum too, with lower rates "
        "for the body; it is half as high once the body is unfrozen. The others start every layer at "
        "`learning_rate`; `step` divides it by 10 after each third, `cosine` ends at 0.",
    )
    learning_rate: float = Field(2e-3, gt=0, description="Base learning rate of the schedule.")
    precision: Precision = Field(
        "auto",
        description="`auto`: torch's own choice, fp32, in which an NVIDIA GPU from Ampere on computes convolutions in "
        "TF32, and matrix products not. `fp32`: IEEE single precision throughout. `tf32`: both in TF32, on such a GPU "
        "alone. `bf16` and `fp16` are automatic mixed precision, `fp16` with scaled gradients.",
    )
    validation: Literal["epoch", "end"] = Field("epoch", description="After every epoch, or once after the last one.")
    drop_last: bool = Field(
        True, description="Drop the last partial batch of an epoch, as fastai does without saying so."
    )
    compile: bool = Field(
        False,
        description="`torch.compile` the model; each run compiles anew, and `compile_seconds` tells for how long.",
    )
    cudnn_benchmark: bool = Field(
        True, description="Let cuDNN try its algorithms at the first use of each shape, as fastai does."
    )
    threads: int | Literal["auto"] = Field(
        "auto",
        description="CPU threads of each training process; `auto` is torch's own choice, shared by all processes.",
    )

    @model_validator(mode="after")
    def _at_least_one_thread(self) -> Self:
        if self.threads != "auto" and self.threads < 1:
            raise ValueError(f"threads: {self.threads} is not allowed: auto, or 1 and more")
        return self

    @model_validator(mode="after")
    def _at_least_one_process(self) -> Self:
        if self.processes != "auto" and not 1 <= self.processes <= 1024:
            raise ValueError(f"processes: {self.processes} is not allowed: auto, or 1 to 1024")
        return self

    @property
    def replicas(self) -> int:
        """Processes that train, of a planned run: the plan knows how many ``auto`` is."""
        if self.strategy == "single":
            return 1
        if self.processes == "auto":
            raise ValueError("training.processes: auto is not resolved yet: see study.strategy.resolve")
        return self.processes

    @property
    def nodes(self) -> int:
        """Launchers that start the processes."""
        return 2 if self.strategy == "ddp_two_nodes" else 1

    @property
    def global_batch_size(self) -> int:
        """Images of a batch, or of a micro-batch, of all replicas together."""
        return self.batch_size * (self.replicas if self.batch_size_is == "replica" else 1)

    @property
    def replica_batch_size(self) -> int:
        """The same, of each replica."""
        return self.global_batch_size // self.replicas


class Loader(Strict):
    """How images reach the model."""

    kind: Literal["workers", "device", "alone"] = Field(
        "workers",
        description="`workers`: a DataLoader decodes each image in each epoch. `device`: all images are decoded "
        "before the clock starts and stay on the device. `alone`: the DataLoader's batches are fetched and thrown "
        "away, and nothing trains: what the loader by itself can deliver.",
    )
    workers: int | Literal["auto"] = Field(
        "auto",
        description="Worker processes of each replica's DataLoader; `auto` is fastai's default, min(16, CPUs), shared "
        "by all replicas.",
    )
    sharding: Literal["contiguous", "strided"] = Field(
        "contiguous",
        description="How the replicas share a batch, which holds the images that one process's would: `contiguous`: "
        "each takes one stretch of it; `strided`: they take its images in turn.",
    )
    pin_memory: bool | Literal["auto"] = Field(
        "auto",
        description="Hand batches over in page-locked memory. `auto`: for a GPU; with stock fastai never.",
    )
    prefetch_factor: int | None = Field(
        None, ge=1, le=1024, description="Batches that each worker keeps ready; none is torch's own choice, 2."
    )
    persistent_workers: bool = Field(False, description="Keep the workers from one epoch to the next.")

    @model_validator(mode="after")
    def _workers_are_not_negative(self) -> Self:
        if self.workers != "auto" and not 0 <= self.workers <= 256:
            raise ValueError(f"workers: {self.workers} is not allowed: auto, or 0 to 256")
        return self


class Inference(Strict):
    """What `task: inference` measures: the validation images in batches, one batch after the other, each timed by
    itself. Before it the model is trained as `training` says, from the study's seed: every level has the same weights.
    """

    precision: Literal["fp32", "bf16", "fp32_onnx", "int8"] = Field(
        "fp32",
        description="`fp32` (IEEE single precision), `bf16`: by torch, weights and images in that type. `int8`: "
        "static quantisation, convolutions included, by ONNX Runtime on a CPU. `fp32_onnx`: the same runtime without "
        "quantisation, which tells what is the runtime's from what is the precision's.",
    )
    batch_size: int = Field(
        1, ge=1, description="Images in a batch. The validation images are taken in turn, over and over."
    )
    batches: int = Field(
        100,
        ge=1,
        description="Batches that are timed; more where one pass over the validation images needs more. With fewer "
        "than 100 the 99th percentile is the slowest.",
    )
    warm_up_batches: int = Field(10, ge=0, description="Batches before those: recorded, and in no figure.")
    calibration_images: int = Field(
        128, ge=2, description="`int8`: training images, spread over the set, that the ranges are taken from."
    )


class Limits(Strict):
    """What a run may use of the machine. An empty key is no limit."""

    memory_gib: float | None = Field(
        None,
        gt=0,
        description="Host memory of a run with its workers, in GiB; a run that wants more is `out_of_memory`. Needs a "
        "container engine.",
    )
    cpus: int | None = Field(None, ge=1, description="CPUs of a run: the first of those that the launcher may use.")
    timeout_seconds: float | None = Field(
        None,
        gt=0,
        description="A run that takes longer is ended, and recorded as `failed`. Another value measures nothing again.",
    )


class Keys(Strict):
    """The keys that decide what a run does, before factors are applied. A factor is any dotted key of it."""

    task: Literal["training", "inference"] = Field(
        "training",
        description="What is timed. `inference`: the model is trained first, and then asked as `inference` says.",
    )
    device: Device = Field("cpu", description="Where the model trains.")
    dataset: Dataset = Field(default_factory=lambda: Dataset.model_validate({}))
    model: Model = Field(default_factory=lambda: Model.model_validate({}))
    training: Training = Field(default_factory=lambda: Training.model_validate({}))
    loader: Loader = Field(default_factory=lambda: Loader.model_validate({}))
    inference: Inference = Field(default_factory=lambda: Inference.model_validate({}))
    limits: Limits = Field(default_factory=lambda: Limits.model_validate({}))
    control: Literal["first", "second"] = Field(
        "first",
        description="Changes nothing: `null_control` makes it a factor, so that each configuration is there twice.",
    )
    seed: int = Field(1, ge=0, description="Seed of the runs' order, of random weights and of every run's own seed.")


class Settings(Keys):
    """One run's keys, with a level of each factor: here they must go together."""

    @model_validator(mode="after")
    def _folder_has_a_path(self) -> Self:
        if self.dataset.source == "folder" and not self.dataset.path:
            raise ValueError("dataset.path: None is not allowed where dataset.source is folder: name the folder")
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
                "dataset.terms: None is not allowed where dataset.source is search: give a term for each class, such "
                "as {bird: bird photo, forest: forest photo}, or the manifest of an earlier search as dataset.manifest"
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
                f"loader.kind: 'alone' is not allowed with training.strategy {self.training.strategy}, for nothing "
                "trains: workers or device, or training.strategy single"
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
                "fastai trains in fp32 all the same: auto, fp32"
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
                        f"loader.{key}: {given} is not allowed with loader.workers 0, where no worker could: "
                        f"{'none' if stock is None else 'false'}, or 1 worker and more"
                    )
        return self


class Curve(Strict):
    """What is fitted against what."""

    x: str = Field("training.batch_size", description="The factor on the horizontal axis.")
    y: Total = Field(
        "fit_seconds",
        description="The time that is fitted, in seconds; with `task: inference` it is `thousand_images_seconds`.",
    )


class Study(Keys):
    """One file in `config/studies`."""

    title: str = Field(min_length=1, description="A name for headings.")
    question: str = Field(min_length=1, description="What the study asks, as one sentence.")
    factors: dict[str, list[Any]] = Field(
        default_factory=dict,
        description="Dotted keys with their levels; the runs are the product of the levels times `replicates`.",
    )
    null_control: bool = Field(
        False,
        description="Run every configuration twice in each block, as the two levels of the factor `control`: what "
        "differs between them is the machine's noise.",
    )
    replicates: int = Field(3, ge=1, le=1000, description="How often each configuration is run, in randomised blocks.")
    curve: Curve | None = Field(None, description="What is fitted against what; none for no fit.")
    time: Total | None = Field(
        None,
        description="The time that is compared, in a study without a `curve`; none is `fit_seconds`, or "
        "with `task: inference` `thousand_images_seconds`.",
    )
    contrast: str | None = Field(None, description="The factor whose levels are compared as a ratio of times.")
    reduced: dict[str, Any] = Field(
        default_factory=dict,
        description="Dotted keys (or `replicates`) with their values under `size: reduced`, for a machine of two "
        "CPU cores.",
    )
    full: dict[str, Any] = Field(
        default_factory=dict, description="Written by the pipeline: what the reduced keys replaced. Not for a file."
    )
    published: str | None = Field(None, description="The study in `study/published.csv` to show beside the runs.")

    @property
    def compared(self) -> list[str]:
        """The factors whose levels differ: all but the null control's, whose runs are replicates of each other."""
        return [key for key in self.factors if key != "control"]

    @property
    def total(self) -> Total:
        """The time that is analysed: the curve's, else the one that is named, else the one that the task is about."""
        if self.curve:
            return self.curve.y
        return self.time or (TOTALS_OF_INFERENCE[0] if self.task == "inference" else "fit_seconds")

    @model_validator(mode="before")
    @classmethod
    def _a_null_control_is_a_factor(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("null_control") is True:
            factors = values.get("factors") or {}
            if isinstance(factors, dict) and "control" not in factors:
                return values | {"factors": factors | {"control": ["first", "second"]}}
        return values

    @model_validator(mode="after")
    def _reduced_names_keys(self) -> Self:
        allowed = [*setting_keys(), "replicates"]
        for key in self.reduced:
            if key not in allowed:
                raise ValueError(f"reduced: {key!r} names no key; allowed: {', '.join(allowed)}")
        return self

    @model_validator(mode="after")
    def _factors_name_keys_and_levels(self) -> Self:
        allowed = setting_keys()
        for key, levels in self.factors.items():
            if key not in allowed:
                raise ValueError(f"factors: {key!r} names no key; allowed: {', '.join(allowed)}")
            if not levels:
                raise ValueError(f"factors.{key}: [] is not allowed: give at least one level")
            if any(isinstance(level, (dict, list)) for level in levels):
                raise ValueError(f"factors.{key}: {levels} is not allowed: a level is one value, no list or mapping")
            if len({repr(level) for level in levels}) < len(levels):
                raise ValueError(f"factors.{key}: {levels} holds a level twice: give each level once")
        if self.curve and self.time:
            raise ValueError(f"time: {self.time!r} is not allowed with a curve, which has its own: curve.y")
        if self.curve and self.curve.x not in self.factors:
            raise ValueError(f"curve.x: {self.curve.x!r} is no factor; allowed: {', '.join(self.factors) or 'none'}")
        own = [y for y in get_args(Total) if (y in TOTALS_OF_INFERENCE) == (self.task == "inference")]
        if self.total not in own and "task" not in self.factors:
            key = "curve.y" if self.curve else "time"
            raise ValueError(f"{key}: {self.total!r} is not allowed with task {self.task}; allowed: {', '.join(own)}")
        if self.contrast and self.contrast not in self.factors:
            raise ValueError(f"contrast: {self.contrast!r} is no factor; allowed: {', '.join(self.factors) or 'none'}")
        return self


class Images(Strict):
    """Images that are there already, in place of those that `docker/Dockerfile` makes."""

    cpu: str | None = Field(
        None,
        min_length=1,
        description="Image of the runs on a CPU: a reference that the engine knows or can pull, or the path of an "
        "archive (`docker save`; for apptainer also a `.sif`).",
    )
    cuda: str | None = Field(None, min_length=1, description="The same for the runs on a GPU.")


class Selection(Strict):
    """`config/config.yaml`, and what `--config` changes of it."""

    studies: list[str] = Field(
        default_factory=lambda: ["quickstart"], description="Files of `config/studies`, by name."
    )
    size: Literal["full", "reduced"] = Field(
        "full",
        description="`reduced`: each study's `reduced` keys, for a machine of two CPU cores; the report says which. "
        "Overrides count above it.",
    )
    devices: Literal["auto"] | list[Device] = Field(
        "auto", description="`auto`: the devices that each study names. A list replaces them."
    )
    container: Literal["auto", "docker", "podman", "apptainer", "none"] = Field(
        "auto",
        description="Which engine runs the training. `auto`: docker where its engine answers and the images are there "
        "or can be built, else the host, and the report says why. An engine named outright is an error where it "
        "cannot serve. `none`: the host.",
    )
    images: Images = Field(default_factory=lambda: Images.model_validate({}))
    base_image: str | None = Field(
        None,
        min_length=1,
        description="What `docker/Dockerfile` builds on, in place of its own pinned default: any Debian image with "
        "Python 3.11 to 3.13, `venv` and `ca-certificates`.",
    )
    overrides: dict[str, Any] = Field(
        default_factory=dict, description="Dotted keys of the chosen studies with new values or lists of levels."
    )

    @model_validator(mode="after")
    def _something_is_selected(self) -> Self:
        for key, value in (("studies", self.studies), ("devices", self.devices)):
            if not value:
                raise ValueError(f"{key}: [] is not allowed: name at least one")
        return self


def is_folder_name(text: str) -> bool:
    """Whether a folder can have this name anywhere, and is in nobody's way."""
    plain = text.isprintable() and not set(text) & set('/\\:*?"<>|') and text == text.strip(" ")
    return plain and 0 < len(text) <= 80 and not text.startswith(".") and not text.endswith((".", ".json"))


def setting_keys(model: type[BaseModel] = Keys, prefix: str = "") -> list[str]:
    """Every dotted key of the settings, in the order of the models."""
    keys: list[str] = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += setting_keys(field.annotation, f"{prefix}{name}.")
        else:
            keys.append(prefix + name)
    return keys


def get(settings: BaseModel, key: str) -> Any:
    """The value of the dotted ``key``."""
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def shown(study: Study, key: str, level: Any) -> Any:
    """A level as tables show it: a path by its base name, where that tells it from the other levels."""
    if isinstance(level, bool) or not isinstance(level, (int, float)):
        names = [Path(str(other)).name for other in study.factors.get(key, [])]
        return Path(str(level)).name if names.count(Path(str(level)).name) == 1 else str(level)
    return level


def with_values(settings: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """A copy of the nested ``settings`` with each dotted key of ``values`` set."""
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
