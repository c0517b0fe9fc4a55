"""The raw samples of one run, as the loops return them.

Times are in seconds, memory is in bytes.
"""

from operator import attrgetter
from statistics import fmean, median
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from study.base.errors import ValueRefused
from study.base.strict import Strict
from study.config.times import STEPS

Seconds = Annotated[float, Field(ge=0, le=1e9)]
"""A time that may be 0; 1e9 s are 31 years."""
Duration = Annotated[float, Field(ge=1e-9, le=1e9)]
"""A time that some work took: no clock here tells less than a nanosecond."""
Count = Annotated[int, Field(ge=0, le=2**53)]
"""A number of things or of bytes, which a table holds as float64 without loss."""
Images = Annotated[int, Field(ge=1, le=2**40)]
"""A number of images, whose sum over every epoch is a :data:`Count`, too."""
Loss = Annotated[float, Field(ge=-1e100, le=1e100)]
Epochal = Annotated[float, Field(ge=0, le=1e11)]
"""Seconds since 1970 UTC."""
Share = Annotated[float, Field(ge=0, le=1)]
Number = Annotated[int, Field(ge=0, le=2**31)]
Word = Annotated[str, Field(max_length=40)]


class Samples(Strict):
    """A model of measured values, each of them finite."""

    model_config = ConfigDict(allow_inf_nan=False)


WARM_UP_REPETITIONS = 3
"""Number of the reference workload's warm-up repetitions, before and again after the run."""
LONGEST_REPETITION = 5
"""How many times as long as the median a repetition may count."""


_phases_of = attrgetter(*STEPS)


class Step(Samples):
    """One training step. The phases follow each other without a gap and add up to the step."""

    epoch: int = Field(ge=1)
    """Epoch of the whole schedule, from 1; frozen epochs count."""
    images: Count
    """Images in this step, summed over processes. With one process they are counted; with several
    they are the planned number, and the run fails if the counts differ."""
    warm_up: bool
    """True if `mark_warm_up` marked the step as warm-up. Such steps are kept, and left out of
    steady figures."""
    data_wait_seconds: Seconds
    transfer_seconds: Seconds
    graph_warm_up_seconds: Seconds = 0.0
    """Seconds in which a captured step is executed once before it is recorded. Records without this
    field have them in `device_transform_seconds`."""
    device_transform_seconds: Seconds
    forward_seconds: Seconds
    backward_seconds: Seconds
    optimizer_seconds: Seconds

    @property
    def seconds(self) -> float:
        """Seconds of the whole step."""
        return float(sum(_phases_of(self)))


class Epoch(Samples):
    """One epoch, with training and validation separate."""

    stage: Literal["frozen", "unfrozen"]
    train_seconds: Seconds
    """Seconds until the device has finished the epoch's last step."""
    valid_seconds: Seconds
    """Seconds of validation; 0 after an epoch without validation."""
    loader_start_seconds: Seconds
    """Seconds to make the loader's iterator and start its workers; part of the first step's data
    wait."""
    loader_end_seconds: Seconds
    """Seconds from the last step until the loader has ended and stopped its workers. On a GPU this
    is in the device's timeline, where the last steps may hide it."""
    synchronise_seconds: Seconds
    """Seconds that the host waits at the end of the epoch until the device has caught up."""
    images: Images
    """Number of images trained on, without those that drop_last left out."""
    steps: Images
    train_loss: Loss | None
    """Mean loss over the epoch's images; null if it is not finite."""
    loss_sum: Loss | None = None
    """Sum of the steps' mean losses, the value that many tutorials print; null if it is not
    finite."""
    valid_loss: Loss | None
    """Mean loss over the validation images; null if it is not finite, or after an epoch without
    validation."""
    accuracy: Share | None
    """Share of the validation images classified correctly, 0 to 1; null after an epoch without
    validation."""


class Memory(Samples):
    """Memory peaks over the run, in bytes; null if the device does not report them."""

    device_allocated_bytes: Count | None = None
    """Peak of the memory held by torch's tensors."""
    device_reserved_bytes: Count | None = None
    """Peak of the memory held by torch's allocator, its cache included."""
    device_used_bytes: Count | None = None
    """Memory used on the whole device at the end of training, including the driver's context and
    kernels, and other processes. This is not a peak: cuDNN's search for algorithms takes more for a
    time and frees it."""
    host_resident_bytes: Count | None = None
    """Peak resident memory of the training process, without its workers."""


class Target(Samples):
    """Whether a training with a ``target_accuracy`` reached it, and where: it ends after that
    epoch."""

    reached: bool
    """False if no epoch of the whole schedule reached it: the time to it is censored."""
    epochs: Count | None = None
    """Epochs until it was reached, the frozen ones included."""
    seconds: Seconds | None = None
    """Wall time from the start of the schedule to the end of the validation that reached it."""


class Replica(Samples):
    """One process of a distributed run, as it reported itself."""

    images: Count
    """Number of images that this process trained on, as it counted them."""
    fit_seconds: Seconds
    data_wait_seconds: Seconds
    """Data wait summed over all steps: an uneven loader makes the other processes wait in the
    backward phase."""
    memory: Memory


class PixelDifference(Samples):
    """Distance of a decoder's pixels from Pillow's, as absolute differences of 8-bit values."""

    images: Count
    """Number of training images that were compared."""
    mean: float = Field(ge=0, le=255)
    """Mean over all pixels and channels."""
    largest: Count
    """Largest of all pixels and channels."""


class InForce(Strict):
    """How a process computes once its model is built: what torch and the model say, and not what
    was asked."""

    cpus: Number
    """CPUs that the process may use."""
    threads: Number
    """CPU threads of an operation."""
    interop_threads: Number
    """CPU threads among which operations are shared out."""
    workers: Number
    """Processes, or threads, of the loader."""
    start_method: Word
    """How a loader's processes start."""
    grad_mode: bool
    """True if gradients are recorded."""
    autocast: bool
    """True if operations are cast to another type outside the step, too."""
    default_dtype: Word
    """Type of a new tensor."""
    deterministic: bool
    """True if only deterministic algorithms are allowed."""
    detect_anomaly: bool
    """True if each gradient is looked at for what is no number."""
    flush_denormal: bool
    """True if the smallest numbers count as 0."""
    cudnn: bool
    cudnn_benchmark: bool
    cudnn_deterministic: bool
    mkldnn: bool
    matrix_products: Word
    """Arithmetic of matrix products in fp32: ieee, tf32 or bf16."""
    convolutions: Word
    """Arithmetic of convolutions in fp32."""
    memory_format: Word
    """Order of the weights of convolutions in memory."""
    dtypes: list[Word]
    """Types of the parameters; empty without a model."""
    devices: list[Word]
    """Devices of the parameters and buffers; empty without a model."""


class Measurement(Samples):
    """The result of a loop.

    With several processes the times are those of the first process; images, losses and accuracy are
    those of all.
    """

    setup_seconds: Seconds
    """Seconds to build the loaders, and those of the decoding that the model did not take as well,
    if the images stay on the device."""
    model_seconds: Seconds
    """Seconds to build the model, load its weights and move it to the device."""
    fit_seconds: Seconds
    """Wall time of the whole schedule, validation and warm-up included."""
    fit_started: Epochal | None = None
    """Start of the schedule, in seconds since 1970 UTC; places it among the telemetry's samples."""
    target: Target | None = None
    """Null for a training without a `target_accuracy`."""
    epochs: list[Epoch] = Field(min_length=1)
    steps: list[Step] = Field(min_length=1)
    memory: Memory
    parameters: Count
    """Number of parameters of the model, trained or not."""
    body_sha256: str | None
    """Checksum of the body's weights before the first step; null if nothing trains."""
    trained_sha256: str | None = None
    """Checksum of the trained weights and statistics; null if nothing trains. It is computed
    once no clock runs."""
    decoder_difference: PixelDifference | None = None
    """Distance of the decoder's pixels from Pillow's; null if Pillow decodes."""
    compile_seconds: Seconds | None = None
    """Seconds that torch.compile took in the whole run, validation included; null if nothing is
    compiled."""
    threads: Count
    """Number of CPU threads that torch used in each process, read as training ended."""
    workers: Count
    """Number of the loader's workers, processes or threads, for each training process."""
    in_force: InForce | None = None
    """How the first process computed; null if nothing trains."""
    global_batch_size: Count | None = None
    """Number of images in a batch, summed over processes; with `gradient_accumulation` a step holds
    several batches."""
    replica_batch_size: Count | None = None
    """Number of images of a batch that each process takes."""
    replicas: list[Replica] = []
    """Every process of a distributed run, by its rank; empty if one process trains."""

    @model_validator(mode="after")
    def _each_step_lies_in_an_epoch(self) -> Self:
        for index, step in enumerate(self.steps):
            if step.epoch > len(self.epochs):
                raise ValueRefused(
                    key=f"steps.{index}.epoch",
                    value=step.epoch,
                    why=f"the last is {len(self.epochs)}",
                )
        return self


class CommandSamples(Samples):
    """What was measured of a command: by our clock, and as it printed it."""

    line: str = Field(max_length=200_000)
    """The program and its arguments; a path is cut to its base name."""
    program: str = Field(max_length=200)
    """Name of the program."""
    files: Number
    """Number of the files of which the run had a copy."""
    started: Epochal
    """Start of the command, in seconds since 1970 UTC."""
    seconds: Duration
    """Wall time from the start of the command to its end."""
    marked_seconds: Seconds | None = None
    """Wall time from the line that `output.starts` names to the end; null where none is named."""
    printed: dict[Word, list[Loss]] = {}
    """Each number that a pattern of `output` found, by the pattern's key, in the order in which
    they were printed."""
    peak_resident_bytes: Count | None = None
    """Most memory of one of its processes, as the kernel tells it; null where it does not."""


class Timeline(Samples):
    """Seconds that the parts of a run's process took, one after the other, by its own clock. The
    launcher's clock has the whole."""

    start_seconds: Seconds
    """From the start of the process until its code begins: its imports. A forked process has
    none."""
    inputs_seconds: Seconds
    """Reading and checking the data's files and the weights."""
    device_start_seconds: Seconds
    """The device's first use."""
    instruments_seconds: Seconds
    """The reference workloads before and after."""
    training_seconds: Seconds
    """The loop: loaders, model, schedule, and reading what was recorded."""


class ReferenceWorkload(Samples):
    """Seconds of each repetition (one step of a small network, one copy), in the order in which
    they ran.

    The first repetitions of each list are warm-up. They are kept, and left out of :attr:`seconds`.
    """

    first_use_seconds: Seconds
    """Seconds of the device's first use, in which its context and libraries start."""
    before: list[Duration] = Field(min_length=1)
    after: list[Duration]
    """Repetitions after the run; empty if the run did not finish."""
    host_before: list[Duration] = []
    """Repetitions before the run on the CPUs that load a GPU's data; empty in a run on a CPU."""
    host_after: list[Duration] = []

    @model_validator(mode="after")
    def _repetitions_follow_the_warm_up(self) -> Self:
        for name in ("before", "after", "host_before", "host_after"):
            if 0 < (count := len(getattr(self, name))) <= WARM_UP_REPETITIONS:
                raise ValueError(
                    f"{name}: {count} value(s): more than the {WARM_UP_REPETITIONS} of "
                    "warm-up must follow"
                )
        return self

    @property
    def seconds(self) -> float:
        """Seconds of one repetition: geometric mean of the means before and after the run.

        They are means because a loaded machine interrupts some of the repetitions, and a median
        does not see that. One repetition counts as :data:`LONGEST_REPETITION` medians at most: a
        stop of a tenth of a second is nothing to a run, and would double the mean of so short a
        measurement.
        """
        return self._mean(self.before, self.after)

    @property
    def host_seconds(self) -> float | None:
        """Seconds of one repetition on the CPUs beside a GPU; None in a run on a CPU."""
        return self._mean(self.host_before, self.host_after) if self.host_before else None

    @staticmethod
    def _mean(*parts: list[float]) -> float:
        means = []
        for part in (part[WARM_UP_REPETITIONS:] for part in parts if part):
            most = LONGEST_REPETITION * median(part)
            means.append(fmean(min(one, most) for one in part))
        return float((means[0] * means[-1]) ** 0.5)
