"""The raw samples of one run, as both loops return them. Times in seconds, memory in bytes."""

from statistics import fmean, median
from typing import Literal

from pydantic import Field

from study.config import Strict
from study.measure.arithmetic import Flops

PHASES = ("data_wait", "transfer", "device_transform", "forward", "backward", "optimizer")
FEWEST_STEPS, UNSETTLED = 12, 1.25
WARM_UP_REPETITIONS = 3
"""Of the yardstick, before and after."""


class Step(Strict):
    """One training step. The phases follow each other without a gap and add up to the step."""

    epoch: int = Field(ge=1, description="Epoch of the whole schedule, frozen ones included, from 1.")
    images: int = Field(
        ge=0,
        description="Of all processes. Counted where one trains; else the plan's, which what they counted has to meet.",
    )
    warm_up: bool = Field(description="Marked by `measure.samples.mark_warm_up`; kept, and left out of steady figures.")
    data_wait_seconds: float
    transfer_seconds: float
    device_transform_seconds: float
    forward_seconds: float
    backward_seconds: float
    optimizer_seconds: float

    @property
    def seconds(self) -> float:
        """The whole step."""
        return sum(float(getattr(self, f"{phase}_seconds")) for phase in PHASES)


class Epoch(Strict):
    """One epoch: training and validation apart."""

    stage: Literal["frozen", "unfrozen"]
    train_seconds: float = Field(description="Until the device has done the epoch's last step.")
    valid_seconds: float = Field(description="0 after an epoch without validation.")
    loader_start_seconds: float = Field(
        description="Making the loader's iterator, its workers' start included; within the first step's data wait."
    )
    loader_end_seconds: float = Field(
        description="From the last step to the loader's own end: its workers stop. On a GPU in the device's timeline, "
        "where it may hide behind the last steps."
    )
    synchronise_seconds: float = Field(
        description="How long the host waits at the end of the epoch until the device has caught up."
    )
    images: int = Field(description="Images really trained on: without what drop_last left out.")
    steps: int
    train_loss: float | None = Field(description="Mean over the epoch's images; null where it is no finite number.")
    loss_sum: float | None = Field(
        None, description="Sum of the steps' mean losses, as many tutorials print it; null where it is not finite."
    )
    valid_loss: float | None = Field(description="Null also after an epoch without validation.")
    accuracy: float | None = Field(description="Share of the validation images classified correctly, 0 to 1.")


class Memory(Strict):
    """Peaks over the run, in bytes; null where the device does not tell."""

    device_allocated_bytes: int | None = Field(None, description="By torch's tensors.")
    device_reserved_bytes: int | None = Field(None, description="By torch's allocator, its cache included.")
    device_used_bytes: int | None = Field(
        None,
        description="Of the whole device at the end of training: the driver's context and kernels, and other "
        "processes, included. No peak: cuDNN's search for algorithms takes and gives back more.",
    )
    host_resident_bytes: int | None = Field(None, description="Of the training process, without its workers.")


class Replica(Strict):
    """One process of a distributed run, by its own account."""

    images: int = Field(description="Images that this process itself trained on, as it counted them.")
    fit_seconds: float
    data_wait_seconds: float = Field(description="Of all steps: an uneven loader makes the others wait in backward.")
    memory: Memory


class TimedBatch(Strict):
    """One batch through the trained network: from images that lie on the device until the device has the outputs."""

    images: int
    warm_up: bool = Field(description="One of the first, as many as the study says; in no figure.")
    seconds: float


class InferenceSamples(Strict):
    """What the trained network did when it was asked. Percentiles are computed on read."""

    started: float = Field(description="When the first batch began, in seconds since 1970 UTC.")
    seconds: float = Field(description="Wall time of all batches, what lies between them included.")
    conversion_seconds: float = Field(
        description="From the trained network to one that can be asked: another type of numbers, or export, "
        "calibration and quantisation."
    )
    batches: list[TimedBatch] = Field(description="In the order in which they were made.")
    accuracy: float = Field(description="Share of the validation images classified correctly, 0 to 1.")
    weights_sha256: str = Field(description="Checksum of the trained weights, before they were converted.")
    operators: dict[str, int] = Field(
        description="How many operators of each kind the runtime executes; empty where torch does."
    )
    memory: Memory = Field(
        description="The device's peaks from the conversion on; the host's are those of the process, training included."
    )


class Measurement(Strict):
    """What a loop returns. Of many processes the first's times, and all processes' images, losses and accuracy."""

    setup_seconds: float = Field(description="Building the loaders, and decoding where images stay on the device.")
    model_seconds: float = Field(description="Building the model, loading its weights, moving it to the device.")
    fit_seconds: float = Field(description="Wall time of the whole schedule, validation and warm-up included.")
    fit_started: float | None = Field(
        None, description="When the schedule began, in seconds since 1970 UTC: places it among the telemetry's samples."
    )
    epochs: list[Epoch]
    steps: list[Step]
    memory: Memory
    parameters: int = Field(description="Parameters of the model, trained or not.")
    body_sha256: str | None = Field(
        description="Checksum of the body's weights before the first step; none where nothing trains."
    )
    compile_seconds: float | None = Field(
        None,
        description="What torch.compile took in the whole run, the validation's part included; none where nothing is "
        "compiled.",
    )
    flops: dict[str, Flops] = Field(
        default={}, description="Arithmetic of a step, by stage; empty where not countable."
    )
    inference: InferenceSamples | None = Field(
        None, description="Of a run whose task is inference; all else then tells of the training before it."
    )
    threads: int = Field(description="CPU threads that torch used, of each process.")
    workers: int = Field(description="Worker processes of the loader, of each process.")
    global_batch_size: int | None = Field(
        None,
        description="Images of a batch, of all processes together; `gradient_accumulation` takes several to a step.",
    )
    replica_batch_size: int | None = Field(None, description="The share of each process.")
    replicas: list[Replica] = Field(
        default=[], description="Every process of a distributed run, by its rank; empty where one process trains."
    )


class Yardstick(Strict):
    """Seconds of each repetition (one step of a small network, one copy), in the order in which they were made.

    The first repetitions of each list are warm-up. They are kept, and left out of :attr:`seconds`.
    """

    first_use_seconds: float = Field(description="The first use of the device: its context and libraries start.")
    before: list[float]
    after: list[float] = Field(description="Empty where the run did not come to its end.")
    host_before: list[float] = Field(
        default=[], description="The same on the CPUs beside a GPU: they load its data. Empty in a run on a CPU."
    )
    host_after: list[float] = []

    @property
    def seconds(self) -> float:
        """One repetition: geometric mean of the means before and after.

        Means, for a machine that is loaded interrupts some of the repetitions, which a median does not see.
        """
        return self._mean(self.before, self.after)

    @property
    def host_seconds(self) -> float | None:
        """The same of the CPUs beside a GPU."""
        return self._mean(self.host_before, self.host_after) if self.host_before else None

    @staticmethod
    def _mean(*parts: list[float]) -> float:
        means = [fmean(part[WARM_UP_REPETITIONS:]) for part in parts if part]
        return float((means[0] * means[-1]) ** 0.5)


def settled(steps: list[Step], stages: list[str]) -> bool | None:
    """Whether each stage became steady: its warm-up ended before half of it was over, and the medians of its third
    and fourth quarter differ by less than ``UNSETTLED``. A stage of under ``FEWEST_STEPS`` steps cannot tell: None
    where none can."""
    told = False
    for stage in dict.fromkeys(stages):
        group = [step for step in steps if stages[step.epoch - 1] == stage]
        if len(group) < FEWEST_STEPS:
            continue
        half, last = len(group) // 2, 3 * len(group) // 4
        third, fourth = (median(step.seconds for step in part) for part in (group[half:last], group[last:]))
        told = True
        if group[half - 1].warm_up or max(third, fourth) > UNSETTLED * min(third, fourth):
            return False
    return True if told else None


def mark_warm_up(steps: list[Step], stages: list[str]) -> list[Step]:
    """Mark the first steps of each stage that are still slow.

    ``stages[i]`` is the stage of epoch ``i + 1``. The first step of a stage is always warm-up: it pays
    for the loader's start, the allocator and the first use of each kernel. The steps after it are too
    for as long as they take more than 1.5 times the median of the stage's second half, up to half of
    the stage.
    """
    marked: list[Step] = []
    for stage in dict.fromkeys(stages):
        group = [step for step in steps if stages[step.epoch - 1] == stage]
        settled = sorted(step.seconds for step in group[len(group) // 2 :])
        limit = 1.5 * settled[len(settled) // 2] if settled else 0.0
        slow = 1
        while slow < len(group) // 2 and group[slow].seconds > limit:
            slow += 1
        marked += [step.model_copy(update={"warm_up": index < slow}) for index, step in enumerate(group)]
    return marked
