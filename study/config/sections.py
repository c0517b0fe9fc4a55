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
from study.config.keys import Idle, Key, Values, one_of

MOST_IMAGES = 100_000_000
"""Images of a dataset or of a step up to which a study is planned: no one trains on more here."""
SCANS = 1797
"""Images of the source ``digits``."""
MOST_CPUS = 10_000
MOST_SECONDS = 30_000_000
"""A year, about."""
LONGEST_NAME = 128
"""Bytes of a model's name: it becomes a part of names of files, which may have 255."""
LARGEST_SEED = 2**32 - 1
"""The largest seed that every generator takes."""

DIGITS = {"dataset.source": one_of("digits")}
GENERATED = {"dataset.source": one_of("generated")}
FOUND = {"dataset.source": one_of("folder", "cifar10", "mnist")}
OWN_SPLIT = {"dataset.source": one_of("cifar10", "mnist")}
READY_MADE = {"dataset.source": one_of("cifar10", "mnist", "digits")}
NO_GPU = {"device": one_of("cpu")}
ON_DEVICE = {"loader.kind": one_of("device")}
ONE_EPOCH = {"training.epochs": one_of(1), "training.freeze_epochs": one_of(0)}
OF_A_GPU = Idle(NO_GPU, "device cuda")
OF_A_LOADER = Idle(ON_DEVICE, "loader.kind workers or threads")
OF_SEVERAL = Idle({"training.strategy": one_of("single")}, "training.strategy ddp or ddp_two_nodes")
JPEG = "images that are JPEG files"
ORDERS = {"contiguous": "channels first", "channels_last": "channels last"}
COMPILED = {True: "compiled", False: "not compiled"}
GRAPHS = {True: "CUDA graphs", False: "no CUDA graphs"}

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

    source: Annotated[
        Literal["generated", "folder", "cifar10", "mnist", "digits"],
        Key(
            words={
                "generated": "drawn images",
                "folder": "own photographs",
                "cifar10": "CIFAR-10",
                "mnist": "MNIST",
                "digits": "scanned digits",
            }
        ),
    ] = "generated"
    """`generated`: images drawn from a seed, without a network. `folder`: your own photographs, one
    subfolder per class, or `train` and `val` above these. `cifar10`, `mnist`: the dataset of that
    name from torchvision, read from disk if it is there and downloaded otherwise. `digits`:
    scikit-learn's 1,797 scans of handwritten digits, of 8 x 8 pixels, without a network."""
    path: Annotated[
        str | None,
        Key(
            idle=[
                Idle(
                    {"dataset.source": one_of("generated", "digits")},
                    "dataset.source folder, cifar10 or mnist",
                )
            ]
        ),
    ] = None
    """`folder`: the folder that holds one subfolder per class. `cifar10`, `mnist`: the folder in
    torchvision's layout; without a path the data are downloaded to `results/data`."""
    classes: Annotated[int, Key(idle=[Idle(FOUND, "dataset.source generated")])] = Field(
        2, ge=2, le=1000
    )
    """`generated`: number of classes to draw. `digits`: 10."""
    images: Annotated[int, Key(idle=[Idle(FOUND, "dataset.source generated or digits")])] = Field(
        1030, ge=4, le=MOST_IMAGES
    )
    """`generated`, `digits`: number of images over all classes, divided evenly among the
    classes."""
    channels: Annotated[Literal[1, 3], Key(identifies="always")] = 3
    """Colour channels of the model's input images."""
    image_size: Annotated[int, Key(short="px", identifies="always")] = Field(192, ge=8, le=4096)
    """Side of the square that each image is squished to, in pixels. `generated` draws photographs
    if there are two classes, three channels and more than 32 pixels, and patterns of this size
    otherwise."""
    valid_fraction: Annotated[
        float, Key(idle=[Idle(OWN_SPLIT, "dataset.source generated, folder or digits")])
    ] = Field(0.2, gt=0, lt=1)
    """Share of each class that is held out for validation. `cifar10` and `mnist` keep their own
    split."""
    seed: Annotated[int, Key(idle=[Idle(READY_MADE, "dataset.source generated or folder")])] = (
        Field(42, ge=0, le=LARGEST_SEED)
    )
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

    name: Annotated[str, Key(called="model")] = Field(
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
    weights: Annotated[
        str,
        Key(words={"imagenet": "ImageNet weights", "none": "random weights"}, identifies="never"),
    ] = Field("imagenet", min_length=1)
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

    loop: Annotated[Literal["fastai", "torch"], Key(words={"torch": "PyTorch loop"})] = "torch"
    """`fastai`: stock `vision_learner(...).fine_tune(...)`. A model that is not torchvision's is
    trained by `Learner(...).fit_one_cycle(...)`, or by `.fit(...)` with `schedule: constant`.
    `torch`: the same training in a plain PyTorch loop."""
    freeze_epochs: Annotated[int, Key(small=1)] = Field(1, ge=0, le=10_000)
    """Number of epochs with the body frozen."""
    epochs: Annotated[int, Key(small=1)] = Field(3, ge=1, le=10_000)
    """Number of epochs in which everything is trained; with a `target_accuracy` the largest
    number."""
    target_accuracy: Annotated[float | None, Key(small=None)] = Field(None, gt=0, le=1)
    """Accuracy, 0 to 1, that ends the training: it stops after the first epoch, frozen or not,
    whose validation reaches it, and a run that never does trains all epochs and says so. The
    schedule of the learning rate is laid out over all epochs, and is cut off where the training
    ends. none: always train all epochs."""
    batch_size: Annotated[int, Key(short="bs", same_way=True)] = Field(64, ge=1, le=MOST_IMAGES)
    """Images per step, or per micro-batch with `gradient_accumulation`. It is never changed
    silently."""
    batch_size_is: Annotated[
        Literal["global", "replica"],
        Key(
            words={"global": "batch of all processes", "replica": "batch of each process"},
            idle=[
                Idle({"training.processes": one_of(1)}, "training.processes 2 and more"),
                OF_SEVERAL,
            ],
        ),
    ] = "global"
    """Scope of `batch_size` if several processes train. `global`: all processes together.
    `replica`: each process."""
    strategy: Annotated[
        Literal["single", "ddp", "ddp_two_nodes"],
        Key(
            words={
                "single": "one process",
                "ddp": "several processes",
                "ddp_two_nodes": "two nodes",
            },
            tried=False,
            same_work=True,
        ),
    ] = "single"
    """`single`: one process. `ddp`: `processes` processes, each with a replica of the model and a
    shard of every batch; their gradients are averaged in each step (gloo on a CPU, nccl on GPUs).
    `ddp_two_nodes`: the same on two nodes that find each other: two machines of a SLURM allocation,
    else both on this machine. Batch normalisation uses the statistics of each replica's own
    shard."""
    processes: Annotated[
        int | Literal["auto"],
        _auto_or(1, 1024),
        Key(words={"auto": "default processes"}, idle=[OF_SEVERAL], tried=False, same_work=True),
    ] = "auto"
    """`ddp`: total number of processes. Each has a GPU of its own; on a CPU they share it. `auto`:
    one process for each GPU, two on a CPU, or the largest smaller number that shares every batch
    evenly (2 on 3 GPUs for a batch of 1000); two nodes get equal numbers. If the GPUs are absent,
    `auto` keeps the number of the study's last plan, so that its records are found. `single` has
    one process."""
    gradient_accumulation: int = Field(1, ge=1, le=10_000)
    """Number of micro-batches whose gradients are added before each optimizer step. A step then
    uses `gradient_accumulation` x `batch_size` images. Batch normalisation still sees one
    micro-batch at a time."""
    optimizer: Annotated[
        Literal["adamw", "adam", "sgd"], Key(words={"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"})
    ] = "adamw"
    """`adamw`: fastai's constants, with decay 0.01 except for normalisation layers and biases.
    `adam`: torch's defaults, without decay. `sgd`: momentum 0.9, without decay."""
    schedule: Annotated[
        Literal["one_cycle", "constant", "step", "cosine"],
        Key(words={"one_cycle": "one cycle", "constant": "constant rate", "step": "rate in steps"}),
    ] = "one_cycle"
    """Schedule of the learning rate in each stage. `one_cycle`: fastai's schedule, which also
    changes the momentum, with lower rates for the body; the rates are halved once the body is
    unfrozen. The other schedules start every layer at `learning_rate`: `constant` keeps it, `step`
    divides it by 10 after each third, `cosine` lowers it to 0."""
    learning_rate: Annotated[float, Key(same_way=True)] = Field(2e-3, gt=0, le=1_000_000)
    """Base learning rate of the schedule, before `learning_rate_rule` is applied."""
    learning_rate_rule: Annotated[
        Literal["constant", "linear", "square_root"],
        Key(
            words={
                "constant": "one learning rate",
                "linear": "linear learning rate",
                "square_root": "square-root learning rate",
            }
        ),
    ] = "constant"
    """How the base rate follows the images of a step, those of all processes and micro-batches.
    `constant`: not at all. `linear`: it is multiplied by images / `reference_batch_size`.
    `square_root`: by the root of that."""
    reference_batch_size: Annotated[
        int | None,
        Key(
            idle=[
                Idle(
                    {"training.learning_rate_rule": one_of("constant")},
                    "training.learning_rate_rule linear or square_root",
                )
            ]
        ),
    ] = Field(None, ge=1, le=MOST_IMAGES)
    """Images of a step for which `learning_rate` is meant; a rule other than `constant` needs
    it."""
    precision: Annotated[
        Precision,
        Key(
            words={"auto": "default precision"},
            in_force=["matrix_products", "convolutions", "dtypes"],
        ),
    ] = "auto"
    """`auto`: torch's default, fp32; NVIDIA GPUs since Ampere then compute convolutions in TF32,
    but not matrix products. `fp32`: IEEE single precision throughout. `tf32`: convolutions and
    matrix products in TF32, only on such a GPU. `bf16`, `fp16`: automatic mixed precision, with
    scaled gradients for `fp16`."""
    validation: Annotated[
        Literal["epoch", "end"],
        Key(
            words={"epoch": "validation each epoch", "end": "validation at the end"},
            idle=[Idle(ONE_EPOCH, "more epochs")],
            tried=False,
        ),
    ] = "epoch"
    """`epoch`: validate after every epoch. `end`: validate once, after the last epoch."""
    drop_last: Annotated[
        bool, Key(words={True: "last batch dropped", False: "last batch kept"})
    ] = True
    """True to drop the last partial batch of an epoch, as fastai does by default."""
    memory_format: Annotated[
        Literal["contiguous", "channels_last"], Key(words=ORDERS, in_force=["memory_format"])
    ] = "contiguous"
    """Order of images and activations in memory. `channels_last`: the channels of a pixel lie side
    by side, as the matrix units of GPUs and CPUs read them. The arithmetic is the same, but for
    rounding."""
    compile: Annotated[bool, Key(words=COMPILED, tried=False)] = False
    """True to compile the model with `torch.compile`. Each run compiles again; `compile_seconds` is
    the time that this takes. With `cuda_graph` the compiled code is recorded."""
    cuda_graph: Annotated[bool, Key(words=GRAPHS, tried=False)] = False
    """True to record the forward and the backward pass, and validation, as CUDA graphs at their
    first use with a shape. One launch then replays what the host else launches kernel by kernel.
    The optimizer's step is launched as ever: take a fused one."""
    optimizer_implementation: Annotated[
        Literal["auto", "for_loop", "foreach", "fused"],
        Key(
            words={
                "auto": "default optimizer",
                "for_loop": "optimizer in a loop",
                "foreach": "foreach optimizer",
                "fused": "fused optimizer",
            }
        ),
    ] = "auto"
    """Code of the optimizer's step, by torch's names: a loop over the parameters, a few operations
    over all of them, or one kernel. `auto`: torch's choice, `foreach` on a GPU and `for_loop` on a
    CPU."""
    deterministic: Annotated[
        bool,
        Key(
            words={False: "not deterministic"},
            in_force=["deterministic", "cudnn_deterministic"],
            same_work=True,
            identifies="where it is set",
        ),
    ] = False
    """True to allow only algorithms that give the same result again, as
    `torch.use_deterministic_algorithms` has them, with cuDNN's and cuBLAS's. cuDNN then tries none.
    An operation that has no such algorithm is a failed run."""
    cudnn_benchmark: Annotated[
        bool,
        Key(
            words={True: "cuDNN benchmark", False: "no cuDNN benchmark"},
            idle=[
                OF_A_GPU,
                Idle({"training.deterministic": one_of(True)}, "training.deterministic false"),
            ],
            in_force=["cudnn_benchmark"],
        ),
    ] = True
    """True to let cuDNN try its algorithms at the first use of each shape, as fastai does."""
    threads: Annotated[
        int | Literal["auto"],
        _auto_or(1, MOST_CPUS),
        Key(words={"auto": "default threads"}, in_force=["threads"]),
    ] = "auto"
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

    kind: Annotated[
        Literal["workers", "threads", "device"],
        Key(
            called="loader",
            words={
                "workers": "data loader",
                "threads": "loader threads",
                "device": "decoded beforehand",
            },
        ),
    ] = "workers"
    """`workers`: the worker processes of a DataLoader decode each image in each epoch. `threads`:
    threads of the training process do, so that no process starts and no batch is sent to another.
    `device`: all images are decoded before the clock starts and stay on the device."""
    decoder: Annotated[
        Literal["pillow", "torchcodec"],
        Key(
            words={"pillow": "Pillow", "torchcodec": "TorchCodec"},
            idle=[
                Idle(READY_MADE, JPEG),
                Idle(
                    GENERATED | {"dataset.image_size": Values("up to 32", lambda size: size <= 32)},
                    JPEG,
                ),
                Idle(
                    GENERATED | {"dataset.classes": Values("3 and more", lambda count: count > 2)},
                    JPEG,
                ),
                Idle(GENERATED | {"dataset.channels": one_of(1)}, JPEG),
            ],
        ),
    ] = "pillow"
    """What decodes JPEG files; Pillow decodes all others. `torchcodec`: the library on the CPU,
    whose images Pillow squishes. The record tells how far the pixels lie from Pillow's."""
    workers: Annotated[
        int | Literal["auto"],
        _auto_or(0, 256),
        Key(
            called="loader workers",
            short="workers",
            words={"auto": "default workers"},
            same_way=True,
            idle=[OF_A_LOADER],
            in_force=["workers"],
        ),
    ] = "auto"
    """Worker processes, or threads, of each replica's loader. `auto`: fastai's default, min(16,
    CPUs), divided among all replicas."""
    pin_memory: Annotated[
        bool | Literal["auto"],
        Key(
            words={"auto": "default pinning", True: "pinned memory", False: "no pinned memory"},
            idle=[OF_A_LOADER, OF_A_GPU],
        ),
    ] = "auto"
    """True to hand batches over in page-locked memory. `auto`: true for a GPU, but always false
    with stock fastai."""
    prefetch_factor: Annotated[
        int | None, Key(words={None: "default prefetching"}, same_way=True, idle=[OF_A_LOADER])
    ] = Field(None, ge=1, le=1024)
    """Number of batches that each worker keeps ready, or all threads together. none: 2, as torch
    does."""
    persistent_workers: Annotated[
        bool,
        Key(
            same_way=True,
            idle=[
                Idle(ON_DEVICE, "loader.kind workers"),
                Idle(ONE_EPOCH, "more epochs: the workers stay from one to the next"),
            ],
        ),
    ] = False
    """True to keep the workers from one epoch to the next."""

    def workers_on(self, cpus: int, replicas: int) -> int:
        """Return the number of workers of each replica's loader on so many CPUs."""
        if self.workers == "auto":
            return max(1, min(16, cpus) // replicas)
        return self.workers

    @property
    def batches_ahead(self) -> int:
        """Batches that each worker keeps ready, or all threads together: torch's own default is
        2."""
        return self.prefetch_factor or 2


class Limits(Declared):
    """The resources of the machine that a run may use. A key without a value sets no limit."""

    memory_gib: float | None = Field(None, gt=0, le=1_000_000)
    """Limit of host memory for a run with its workers, in GiB. A run that needs more is recorded as
    `out_of_memory`. The limit needs a container engine."""
    cpus: Annotated[int | None, Key(in_force=["cpus"])] = Field(None, ge=1, le=MOST_CPUS)
    """Number of CPUs of a run: the first `cpus` CPUs that the launcher may use."""
    timeout_seconds: Annotated[float | None, Key(identifies="never")] = Field(
        None, gt=0, le=MOST_SECONDS
    )
    """Time limit of a run, in seconds. A run that takes longer is ended and recorded as `failed`.
    Changing this value measures no run again."""
