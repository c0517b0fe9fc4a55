"""One row of ``timings.csv``: the one declaration of its columns, their units, and which of them
the report shows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import ConfigDict

from study.base.strict import Strict

Format = Literal["count", "number", "percent", "bytes"]


@dataclass(frozen=True)
class Unit:
    """The unit of a column."""

    name: str


@dataclass(frozen=True)
class Resource:
    """A column that the report shows beside the times, under a ``heading`` and in a ``format``.

    With ``shared`` it is shown only for runs in which several processes train.
    """

    heading: str
    format: Format = "number"
    shared: bool = False


SecondsCell = Annotated[float | None, Unit("s")]
BytesCell = Annotated[int | None, Unit("bytes")]
PercentCell = Annotated[float | None, Unit("%")]
ShareCell = Annotated[float | None, Unit("share, 0 to 1")]
ImagesCell = Annotated[int | None, Unit("images")]


class Timing(Strict):
    """One planned run in the table of timings, or a record of one that was excluded.

    Beside these columns the table has one for each factor of the study, and always
    ``training.batch_size``, named by their dotted keys. Every column is always there; a value that
    was not measured is empty.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    study: str
    """Name of the study."""
    run: str
    """Name of the run, unique in the study."""
    key: str
    """Hash of everything that could change the result; part of the record's file name."""
    block: int
    """Number of the block (replicate), from 1."""
    position: int
    """Place in the seeded order of the whole study, from 1."""
    device: str
    """`cpu` or `cuda`."""
    precision: str
    """Precision of the training."""
    group: str
    """The levels, in words, that a run shares with those that it is compared with."""
    level: str
    """Its own levels, in words: those that are compared in its group."""

    outcome: str
    """`ok`, `out_of_memory`, `failed`, `unavailable`, or `refused` for a record that does not fit
    its plan, its schema or its checksum: nothing of it is used."""
    message: str | None
    """Reason for an outcome other than `ok`."""
    session: int | None
    """Number of the start of the pipeline that measured the run, another on each machine of one
    start."""
    started: str | None
    """Start of the run in UTC, ISO 8601."""
    process_seconds: SecondsCell
    """Time of the whole process, start-up and imports included."""

    excluded: Literal["disturbed", "broken block", "first of its start", "outlier"] | None
    """Why this record counts in no number: a `disturbed` first try, measured once more; part of a
    `broken block`, measured anew as a whole; the `first of its start`, where no warm-up run was
    before it; or the only `outlier` of a setting with ten runs or more. Empty for a record that
    counts."""
    outlier: float | None
    """1 for a slow outlier, far from the other runs of its setting, -1 for a fast one, else 0. It
    counts against its own setting alone."""
    disturbed: str | None
    """Keys of the study's `evidence` whose limit others crossed during the run, joined by `; `."""
    samples_refused: str | None
    """Reason why the samples beside the record are not used; empty where they are or are none."""
    warmed_up: bool | None
    """Whether a warm-up run of its way of computing and shape ran before, in the same start."""
    started_as: str | None
    """Whether the run's process was `forked` from one that had imported torch, or `fresh`."""
    node: str | None
    """Pseudonym of the machine; empty if it is not known."""
    quiet: bool | None
    """Whether others crossed no limit when the run began."""
    others_cpu_percent: PercentCell
    """CPU time of others during the run, in percent of the CPUs that the run might use."""

    device_name: str | None
    """Name of the GPU or of the processor."""
    weights: str | None
    """Kind of the starting weights: `imagenet`, `file` or `random`."""
    software: str | None
    """Versions of Python and of the libraries, the engine, the commit."""
    image_id: str | None
    """Checksum of the container image; empty on the host."""
    reference_seconds: SecondsCell
    """One repetition of the reference workload on the device, before and after the run."""
    host_reference_seconds: SecondsCell
    """One repetition of the reference workload on the CPUs that load a GPU's data."""

    parameters: Annotated[int | None, Resource("parameters", "count")]
    """Number of parameters of the model, trained or not."""
    replicas: Annotated[int | None, Resource("processes that train", "count", shared=True)]
    """Number of processes that train one model together."""
    global_batch_size: Annotated[
        ImagesCell, Resource("images of a step, all processes", "count", shared=True)
    ]
    """Images of a batch, summed over the processes."""
    replica_batch_size: Annotated[
        ImagesCell, Resource("images of a step, each process", "count", shared=True)
    ]
    """Images of a batch that each process takes."""
    threads: int | None
    """Number of CPU threads that torch used in each process."""
    workers: Annotated[int | None, Resource("loader workers", "count")]
    """Number of the loader's worker processes for each process."""
    train_images: ImagesCell
    """Images of the training set."""
    valid_images: ImagesCell
    """Images of the validation set."""
    images_processed: ImagesCell
    """Images trained on in all epochs."""
    steps: int | None
    """Number of training steps in all epochs."""
    warm_up_steps: int | None
    """Number of steps marked as warm-up."""

    start_seconds: SecondsCell
    """Time until the code of the run's process begins: its imports, where it is not forked."""
    inputs_seconds: SecondsCell
    """Time to read and check the data's files and the weights."""
    device_start_seconds: SecondsCell
    """Time of the device's first use."""
    instruments_seconds: SecondsCell
    """Time of the reference workloads before and after."""
    training_seconds: SecondsCell
    """Time of the whole loop: `setup_seconds`, `blog_seconds`, and reading what was recorded."""
    setup_seconds: SecondsCell
    """Time to build the loaders, with decoding for a device loader."""
    model_seconds: SecondsCell
    """Time to build the model and move it to the device."""
    fit_seconds: SecondsCell
    """Wall time of the whole schedule, validation included."""
    blog_seconds: SecondsCell
    """`model_seconds` + `fit_seconds`."""
    train_seconds: SecondsCell
    """Training time of all epochs, without validation."""
    steady_seconds: SecondsCell
    """`train_seconds` without `warm_up_extra_seconds`."""
    epoch_seconds: Annotated[SecondsCell, Resource("training of an epoch (s)")]
    """Training time of an epoch, mean over the epochs."""
    valid_seconds: Annotated[SecondsCell, Resource("validation, all epochs (s)")]
    """Validation time of all epochs."""
    target_seconds: SecondsCell
    """Wall time of the schedule until the end of the validation that reached the target accuracy;
    empty where none did."""
    target_epochs: Annotated[
        int | None, Resource("epochs to the target, runs that reached it", "count")
    ]
    """Epochs of the schedule, frozen ones included, until the target accuracy was reached."""
    reached_target: bool | None
    """Whether the target accuracy was reached; empty for a training without one."""
    step_seconds: SecondsCell
    """Median steady step: a full batch, everything trained, no warm-up."""
    step_data_wait_seconds: SecondsCell
    """Median wait for data of the steady steps."""
    step_forward_seconds: SecondsCell
    """Median forward pass of the steady steps."""
    step_backward_seconds: SecondsCell
    """Median backward pass of the steady steps."""
    step_optimizer_seconds: SecondsCell
    """Median step of the optimizer in the steady steps."""
    command_seconds: Annotated[SecondsCell, Resource("the whole command (s)")]
    """Wall time of a command, from its start to its end."""
    command_start_seconds: Annotated[SecondsCell, Resource("start-up of the command (s)")]
    """Wall time of a command until the line that `output.starts` names."""
    marked_seconds: Annotated[SecondsCell, Resource("work of the command (s)")]
    """Wall time of a command from the line that `output.starts` names to its end."""
    printed_seconds: SecondsCell
    """Time that a command measured itself, by `output.seconds`."""
    loss: Annotated[float | None, Resource("loss")]
    """Loss that a command printed, of several the last."""
    images_per_second: Annotated[float | None, Unit("images/s"), Resource("images/s")]
    """Images over `train_seconds`."""
    learning_rate: float | None
    """Base learning rate of the schedule, after `training.learning_rate_rule`."""
    chance_accuracy: ShareCell
    """Accuracy of a network that always answers the most frequent class of the validation
    images."""
    accuracy: ShareCell
    """Validation images classified correctly after the last epoch."""
    valid_loss: float | None
    """Mean validation loss after the last epoch."""

    data_wait_seconds: SecondsCell
    """Waiting for data, summed over all steps."""
    transfer_seconds: SecondsCell
    """Copies from host to device, summed over all steps."""
    graph_warm_up_seconds: SecondsCell
    """Warm-up before the capture of steps as CUDA graphs, summed over all steps."""
    device_transform_seconds: SecondsCell
    """Transforms on the device, summed over all steps."""
    forward_seconds: SecondsCell
    """Forward pass with the loss, summed over all steps."""
    backward_seconds: SecondsCell
    """Backward pass, summed over all steps."""
    optimizer_seconds: SecondsCell
    """The optimizer's updates, summed over all steps."""
    other_seconds: SecondsCell
    """`fit_seconds` less the phases above and `valid_seconds`."""

    gpu_utilisation_percent: Annotated[PercentCell, Resource("GPU busy", "percent")]
    """Share of time in which any kernel ran, mean over the samples of the run."""
    cpu_percent: Annotated[PercentCell, Resource("CPUs busy", "percent")]
    """Load of the whole machine, mean over the samples of the run."""
    peak_device_allocated_bytes: Annotated[BytesCell, Resource("device memory, tensors", "bytes")]
    """Peak of the memory held by torch's tensors, in the first process."""
    peak_all_device_allocated_bytes: Annotated[
        BytesCell, Resource("device memory, tensors of all processes", "bytes", shared=True)
    ]
    """`peak_device_allocated_bytes`, summed over the processes."""
    peak_device_used_bytes: Annotated[BytesCell, Resource("whole device, sampled", "bytes")]
    """Peak of the memory in use on the whole device, driver and other processes included; empty
    where the samples missed it, for it is below what torch had reserved."""
    peak_tree_resident_bytes: BytesCell
    """Peak resident memory of the run and its workers, summed: shared pages count in each, so this
    is no more than an upper bound."""
    peak_device_reserved_bytes: BytesCell
    """Peak of the memory held by torch's allocator, in the first process."""
    peak_host_resident_bytes: Annotated[BytesCell, Resource("host memory", "bytes")]
    """Peak resident memory of the first process, without its workers."""

    energy_joules: Annotated[float | None, Unit("J"), Resource("energy (J)")]
    """Energy of the GPU by NVML's counter; empty in a run on a CPU."""
    images_per_joule: Annotated[float | None, Unit("images/J"), Resource("images per joule")]
    """`images_processed` over `energy_joules`."""
    energy_refused: str | None
    """Reason for the absence of `energy_joules`."""
    idle_watts: Annotated[float | None, Unit("W"), Resource("idle (W)")]
    """Power of the GPU when the run began."""
    sm_clock_mhz: Annotated[float | None, Unit("MHz")]
    """Clock of the GPU's multiprocessors, mean over the samples of the run."""
    gpu_temperature_celsius: Annotated[float | None, Unit("°C")]
    """Highest temperature of the GPU."""

    first_batch_seconds: Annotated[SecondsCell, Resource("first batch of an epoch (s)")]
    """Wait for the first batch of an epoch, mean over the epochs."""
    loader_start_seconds: Annotated[SecondsCell, Resource("of that, workers' start (s)")]
    """Time to start the loader's workers, mean over the epochs; empty without workers."""
    loader_end_seconds: SecondsCell
    """Time from the last step until the loader has ended, summed over the epochs."""
    warm_up_extra_seconds: Annotated[SecondsCell, Resource("warm-up beyond steady steps (s)")]
    """Time that warm-up steps took beyond the median steady step, without data waits."""
    compile_seconds: Annotated[SecondsCell, Resource("compilation (s)")]
    """Time that torch.compile took in the whole run."""
    decoder_difference: Annotated[
        float | None, Unit("of 255"), Resource("pixels' mean distance from Pillow's, of 255")
    ]
    """Mean distance of the pixels of training images from those that Pillow decodes; empty for
    Pillow."""


def resources() -> dict[str, Resource]:
    """Return the columns that the report shows beside the times, in the table's order."""
    found = {}
    for name, field in Timing.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, Resource):
                found[name] = mark
    return found


def kind(name: str) -> type[Any]:
    """Return the type of a column's values: ``str``, ``bool``, ``int`` or ``float``."""
    annotation: Any = Timing.model_fields[name].annotation
    value: type[Any] = next(
        (item for item in get_args(annotation) if item is not type(None)), annotation
    )
    return str if get_origin(value) is Literal else value


def dtype(name: str) -> str:
    """Return the pandas type of a column: a whole number that may be missing is float64, as NaN
    is."""
    if Timing.model_fields[name].annotation is int:
        return "int64"
    return {str: "object", bool: "boolean", int: "float64", float: "float64"}[kind(name)]


def columns(keys: Iterable[str]) -> list[str]:
    """Return the columns of a table in their order: ``keys``, the dotted ones, follow what the plan
    says of a run."""
    declared = list(Timing.model_fields)
    planned = declared.index("outcome")
    return [*declared[:planned], *(key for key in keys if key not in declared), *declared[planned:]]
