"""The models of a study file and of ``config/config.yaml``: every key, its unit, its default, what is allowed.

Values only: ``study/config/load.py`` reads the files and turns what is wrong into one line.
"""

import re
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from study.base.strict import Strict
from study.config.networks import NETWORKS, UNFIT, is_own

Device = Literal["cpu", "cuda"]
Precision = Literal["auto", "fp32", "tf32", "bf16", "fp16"]


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
            raise ValueError("training.processes: auto is not resolved yet: see study.host.plan.process_count.resolve")
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


def is_folder_name(text: str) -> bool:
    """Whether a folder can have this name anywhere, and is in nobody's way."""
    plain = text.isprintable() and not set(text) & set('/\\:*?"<>|') and text == text.strip(" ")
    return plain and 0 < len(text) <= 80 and not text.startswith(".") and not text.endswith((".", ".json"))
