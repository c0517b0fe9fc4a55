"""The models of a study file and of ``config/config.yaml``: every key with its unit, default and
allowed values.

This module holds values only. ``study/config/load.py`` reads the files, and reports what is wrong
in one line.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from study.base.errors import ValueRefused
from study.base.strict import Declared

MOST_IMAGES = 100_000_000
"""Images of a dataset or of a step up to which a study is planned: no one trains on more here."""
SCANS = 1797
"""Images of the source ``digits``."""
MOST_BATCHES = 1_000_000
"""Batches of inference of which a record holds each time."""
MOST_CPUS = 10_000
MOST_SECONDS = 30_000_000
"""A year, about."""
LONGEST_NAME = 128
"""Bytes of a model's name: it becomes a part of names of files, which may have 255."""
LARGEST_SEED = 2**32 - 1
"""The largest seed that every generator takes."""

Device = Literal["cpu", "cuda"]
Precision = Literal["auto", "fp32", "tf32", "bf16", "fp16"]
AUXILIARY = ("googlenet", "inception_v3")
"""torchvision's models with outputs beside the last layer's, which are left out here."""


def _no_option(name: str) -> str:
    if name.startswith("-"):
        raise ValueRefused(value=name, why="an engine's command would take it for an option")
    return name


def _auto_or(least: int, most: int) -> AfterValidator:
    def check(value: int | str) -> int | str:
        if isinstance(value, int) and not least <= value <= most:
            raise ValueRefused(value=value, allowed=f"auto, or {least} to {most}")
        return value

    return AfterValidator(check)


ImageName = Annotated[str, Field(min_length=1), AfterValidator(_no_option)]
"""A container image: a reference, or the path of a file."""


def is_own(model: str) -> bool:
    """Return whether a model's name is the import path of a user's own; all others are
    torchvision's.

    Those of torchvision are a body with a new head. A user's own is trained whole, unless it says
    its body.
    """
    return ":" in model


def short_name(model: str) -> str:
    """Return a model's name without the module of its factory."""
    return model.rpartition(":")[2]


class Dataset(Declared):
    """The images, and how they are split. A source ignores the keys that it does not use."""

    source: Literal["generated", "folder", "cifar10", "mnist", "digits"] = "generated"
    """`generated`: images drawn from a seed, without a network. `folder`: your own photographs, one
    subfolder per class, or `train` and `val` above these. `cifar10`, `mnist`: the dataset of that
    name from torchvision, read from disk if it is there and downloaded otherwise. `digits`:
    scikit-learn's 1,797 scans of handwritten digits, of 8 x 8 pixels, without a network."""
    path: str | None = None
    """`folder`: the folder that holds one subfolder per class. `cifar10`, `mnist`: the folder in
    torchvision's layout; without a path the data are downloaded to `results/data`."""
    classes: int = Field(2, ge=2, le=1000)
    """`generated`: number of classes to draw. `digits`: 10."""
    images: int = Field(1030, ge=4, le=MOST_IMAGES)
    """`generated`, `digits`: number of images over all classes, divided evenly among the
    classes."""
    channels: Literal[1, 3] = 3
    """Colour channels of the model's input images."""
    image_size: int = Field(192, ge=8, le=4096)
    """Side of the square that each image is squished to, in pixels. `generated` draws photographs
    if there are two classes, three channels and more than 32 pixels, and patterns of this size
    otherwise."""
    valid_fraction: float = Field(0.2, gt=0, lt=1)
    """Share of each class that is held out for validation. `cifar10` and `mnist` keep their own
    split."""
    seed: int = Field(42, ge=0, le=LARGEST_SEED)
    """Seed of the drawn images and of the split."""

    @property
    def drawn(self) -> bool:
        """True if the images are drawn, and are no photographs of anything."""
        return self.source == "generated"

    @property
    def images_words(self) -> str:
        """What the images are, as the page says it."""
        return {"generated": "generated images", "digits": "scanned digits"}.get(
            self.source, "images"
        )

    @property
    def photographs(self) -> bool:
        """True if ``generated`` draws JPEG files in the size of photographs, False for small
        arrays."""
        return self.classes == 2 and self.channels == 3 and self.image_size > 32


class Model(Declared):
    """The network and its initial weights."""

    name: str = Field(
        "resnet18",
        min_length=1,
        description="Name of a torchvision classification model that takes images of "
        "`dataset.image_size`. "
        f"{' and '.join(f'`{name}`' for name in AUXILIARY)} are trained without their "
        "auxiliary outputs. Or a model "
        "of your own as `package.module:factory`: the factory is called with `classes=...`, "
        "and the module and its own "
        "imports are looked up in the folder where the study is started, and in "
        "`replications`. It is trained whole, "
        "unless it says its body and `training.freeze_epochs` is 1 or more. "
        "Its images keep their channels, and their pixels lie in -1 to 1.",
    )
    weights: str = Field("imagenet", min_length=1)
    """`imagenet`: torchvision's weights, downloaded once and checked. `none`: random weights from
    the study's seed. Any other value is the path of a state dict (`.pt`, `.pth` or `.safetensors`).
    Only torchvision's models have ImageNet weights."""

    @model_validator(mode="after")
    def _an_own_model_is_an_import_path(self) -> Self:
        is_path = re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", self.name)
        if (is_own(self.name) and not is_path) or len(self.name.encode()) > LONGEST_NAME:
            why = "a model of your own is package.module:factory, of up to 128 bytes"
            raise ValueRefused(key="name", value=self.name, why=why)
        return self


class Training(Declared):
    """The training: freeze the body, train the head, unfreeze the body, train everything."""

    loop: Literal["fastai", "torch"] = "torch"
    """`fastai`: stock `vision_learner(...).fine_tune(...)`. A model that is not torchvision's is
    trained by `Learner(...).fit_one_cycle(...)`, or by `.fit(...)` with `schedule: constant`.
    `torch`: the same training in a plain PyTorch loop."""
    freeze_epochs: int = Field(1, ge=0, le=10_000)
    """Number of epochs with the body frozen."""
    epochs: int = Field(3, ge=1, le=10_000)
    """Number of epochs in which everything is trained; with a `target_accuracy` the largest
    number."""
    target_accuracy: float | None = Field(None, gt=0, le=1)
    """Accuracy, 0 to 1, that ends the training: it stops after the first epoch, frozen or not,
    whose validation reaches it, and a run that never does trains all epochs and says so. The
    schedule of the learning rate is laid out over all epochs, and is cut off where the training
    ends. none: always train all epochs."""
    batch_size: int = Field(64, ge=1, le=MOST_IMAGES)
    """Images per step, or per micro-batch with `gradient_accumulation`. It is never changed
    silently."""
    batch_size_is: Literal["global", "replica"] = "global"
    """Scope of `batch_size` if several processes train. `global`: all processes together.
    `replica`: each process."""
    strategy: Literal["single", "ddp", "ddp_two_nodes"] = "single"
    """`single`: one process. `ddp`: `processes` processes, each with a replica of the model and a
    shard of every batch; their gradients are averaged in each step (gloo on a CPU, nccl on GPUs).
    `ddp_two_nodes`: the same on two nodes that find each other: two machines of a SLURM allocation,
    else both on this machine. Batch normalisation uses the statistics of each replica's own
    shard."""
    processes: Annotated[int | Literal["auto"], _auto_or(1, 1024)] = "auto"
    """`ddp`: total number of processes. Each has a GPU of its own; on a CPU they share it. `auto`:
    one process for each GPU, two on a CPU, or the largest smaller number that shares every batch
    evenly (2 on 3 GPUs for a batch of 1000); two nodes get equal numbers. If the GPUs are absent,
    `auto` keeps the number of the study's last plan, so that its records are found. `single` has
    one process."""
    gradient_accumulation: int = Field(1, ge=1, le=10_000)
    """Number of micro-batches whose gradients are added before each optimizer step. A step then
    uses `gradient_accumulation` x `batch_size` images. Batch normalisation still sees one
    micro-batch at a time."""
    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    """`adamw`: fastai's constants, with decay 0.01 except for normalisation layers and biases.
    `adam`: torch's defaults, without decay. `sgd`: momentum 0.9, without decay."""
    schedule: Literal["one_cycle", "constant", "step", "cosine"] = "one_cycle"
    """Schedule of the learning rate in each stage. `one_cycle`: fastai's schedule, which also
    changes the momentum, with lower rates for the body; the rates are halved once the body is
    unfrozen. The other schedules start every layer at `learning_rate`: `constant` keeps it, `step`
    divides it by 10 after each third, `cosine` lowers it to 0."""
    learning_rate: float = Field(2e-3, gt=0, le=1_000_000)
    """Base learning rate of the schedule, before `learning_rate_rule` is applied."""
    learning_rate_rule: Literal["constant", "linear", "square_root"] = "constant"
    """How the base rate follows the images of a step, those of all processes and micro-batches.
    `constant`: not at all. `linear`: it is multiplied by images / `reference_batch_size`.
    `square_root`: by the root of that."""
    reference_batch_size: int | None = Field(None, ge=1, le=MOST_IMAGES)
    """Images of a step for which `learning_rate` is meant; a rule other than `constant` needs
    it."""
    precision: Precision = "auto"
    """`auto`: torch's default, fp32; NVIDIA GPUs since Ampere then compute convolutions in TF32,
    but not matrix products. `fp32`: IEEE single precision throughout. `tf32`: convolutions and
    matrix products in TF32, only on such a GPU. `bf16`, `fp16`: automatic mixed precision, with
    scaled gradients for `fp16`."""
    validation: Literal["epoch", "end"] = "epoch"
    """`epoch`: validate after every epoch. `end`: validate once, after the last epoch."""
    drop_last: bool = True
    """True to drop the last partial batch of an epoch, as fastai does by default."""
    memory_format: Literal["contiguous", "channels_last"] = "contiguous"
    """Order of images and activations in memory. `channels_last`: the channels of a pixel lie side
    by side, as the matrix units of GPUs and CPUs read them. The arithmetic is the same, but for
    rounding."""
    compile: bool = False
    """True to compile the model with `torch.compile`. Each run compiles again; `compile_seconds` is
    the time that this takes. With `cuda_graph` the compiled code is recorded."""
    cuda_graph: bool = False
    """True to record the forward and the backward pass, and validation, as CUDA graphs at their
    first use with a shape. One launch then replays what the host else launches kernel by kernel.
    The optimizer's step is launched as ever: take a fused one."""
    optimizer_implementation: Literal["auto", "for_loop", "foreach", "fused"] = "auto"
    """Code of the optimizer's step, by torch's names: a loop over the parameters, a few operations
    over all of them, or one kernel. `auto`: torch's choice, `foreach` on a GPU and `for_loop` on a
    CPU."""
    deterministic: bool = False
    """True to allow only algorithms that give the same result again, as
    `torch.use_deterministic_algorithms` has them, with cuDNN's and cuBLAS's. cuDNN then tries none.
    An operation that has no such algorithm is a failed run."""
    cudnn_benchmark: bool = True
    """True to let cuDNN try its algorithms at the first use of each shape, as fastai does."""
    threads: Annotated[int | Literal["auto"], _auto_or(1, MOST_CPUS)] = "auto"
    """CPU threads of each training process. `auto`: torch's default number, divided among all
    processes."""

    @property
    def replicas(self) -> int:
        """Number of training processes of a planned run. Raise ValueError while ``processes`` is
        still ``auto``."""
        if self.strategy == "single":
            return 1
        if self.processes == "auto":
            raise ValueError(
                "training.processes: auto is not resolved yet: see "
                "study.host.plan.process_count.resolve"
            )
        return self.processes

    @property
    def nodes(self) -> int:
        """Number of nodes: launchers that start the processes."""
        return 2 if self.strategy == "ddp_two_nodes" else 1

    @property
    def global_batch_size(self) -> int:
        """Images in a batch (or micro-batch), summed over all replicas."""
        return self.batch_size * (self.replicas if self.batch_size_is == "replica" else 1)

    @property
    def replica_batch_size(self) -> int:
        """Images in each replica's part of a batch (or micro-batch)."""
        return self.global_batch_size // self.replicas

    @property
    def step_images(self) -> int:
        """Images of a full optimizer step, summed over all replicas and micro-batches."""
        return self.global_batch_size * self.gradient_accumulation

    @property
    def every_epoch(self) -> int:
        """The number of epochs, those with frozen layers, too."""
        return self.freeze_epochs + self.epochs

    @property
    def scaled_learning_rate(self) -> float:
        """Base learning rate of a planned run, after its rule (linear: Goyal et al. 2017, arXiv
        1706.02677)."""
        if self.learning_rate_rule == "constant" or self.reference_batch_size is None:
            return self.learning_rate
        power = 1.0 if self.learning_rate_rule == "linear" else 0.5
        return float(self.learning_rate * (self.step_images / self.reference_batch_size) ** power)


class Loader(Declared):
    """The path of the images to the model."""

    kind: Literal["workers", "threads", "device", "alone"] = "workers"
    """`workers`: the worker processes of a DataLoader decode each image in each epoch. `threads`:
    threads of the training process do, so that no process starts and no batch is sent to another.
    `device`: all images are decoded before the clock starts and stay on the device. `alone`:
    batches are fetched from the DataLoader and discarded without training, which measures the
    loader by itself."""
    decoder: Literal["pillow", "torchcodec"] = "pillow"
    """What decodes JPEG files; Pillow decodes all others. `torchcodec`: the library on the CPU,
    whose images Pillow squishes. The record tells how far the pixels lie from Pillow's."""
    workers: Annotated[int | Literal["auto"], _auto_or(0, 256)] = "auto"
    """Worker processes, or threads, of each replica's loader. `auto`: fastai's default, min(16,
    CPUs), divided among all replicas."""
    pin_memory: bool | Literal["auto"] = "auto"
    """True to hand batches over in page-locked memory. `auto`: true for a GPU, but always false
    with stock fastai."""
    prefetch_factor: int | None = Field(None, ge=1, le=1024)
    """Number of batches that each worker keeps ready, or all threads together. none: 2, as torch
    does."""
    persistent_workers: bool = False
    """True to keep the workers from one epoch to the next."""


class Inference(Declared):
    """The measurement of `task: inference`: the model classifies the validation images in batches,
    and each batch is timed by itself. The model is first trained as `training` says, from the
    study's seed, so that every level has the same weights.
    """

    precision: Literal["fp32", "tf32", "bf16", "fp32_onnx", "int8"] = "fp32"
    """`fp32` (IEEE single precision), `bf16`: torch, with weights and images in that type. `tf32`:
    convolutions and matrix products of fp32 in TF32, which NVIDIA GPUs have since Ampere. `int8`:
    ONNX Runtime on a CPU, with static quantisation that includes convolutions. `fp32_onnx`: ONNX
    Runtime without quantisation, which separates the effect of the runtime from that of the
    precision."""
    memory_format: Literal["contiguous", "channels_last"] = "contiguous"
    """Order of images and activations in memory, as `training.memory_format` has it."""
    compile: bool = False
    """True to compile the trained network with `torch.compile`, before any batch is timed."""
    cuda_graph: bool = False
    """True to record the network's work on a batch as a CUDA graph, which one launch replays. With
    `compile` it is what torch calls `reduce-overhead`."""
    batch_size: int = Field(1, ge=1, le=MOST_IMAGES)
    """Images per batch. The validation images are taken in turn, and again from the first."""
    batches: int = Field(100, ge=1, le=MOST_BATCHES)
    """Least number of timed batches; one pass over the validation images may need more. With fewer
    than 100 batches the 99th percentile is the slowest batch."""
    warm_up_batches: int = Field(10, ge=0, le=MOST_BATCHES)
    """Number of batches before the timed ones. They are recorded but used in no figure."""
    calibration_images: int = Field(128, ge=2, le=MOST_IMAGES)
    """`int8`: number of training images, spread over the set, from which the ranges are computed;
    all of them if there are fewer."""


class Limits(Declared):
    """The resources of the machine that a run may use. A key without a value sets no limit."""

    memory_gib: float | None = Field(None, gt=0, le=1_000_000)
    """Limit of host memory for a run with its workers, in GiB. A run that needs more is recorded as
    `out_of_memory`. The limit needs a container engine."""
    cpus: int | None = Field(None, ge=1, le=MOST_CPUS)
    """Number of CPUs of a run: the first `cpus` CPUs that the launcher may use."""
    timeout_seconds: float | None = Field(None, gt=0, le=MOST_SECONDS)
    """Time limit of a run, in seconds. A run that takes longer is ended and recorded as `failed`.
    Changing this value measures no run again."""
