"""The findings of the statistics: a closed set of kinds, each a small model of values.

`fit.json` holds findings and no sentences. ``study.analysis.wording`` has a function for each kind that makes its
sentence.
"""

from typing import Annotated, Literal

from pydantic import Field

from study.artifacts.setting import Setting
from study.base.strict import Strict

# What a reader must know before believing the numbers.


class OfSetting(Strict):
    """A number of one setting."""

    setting: Setting
    value: float


class Missed(Strict):
    """The runs of one setting that did not reach the target accuracy."""

    setting: Setting
    missed: int
    runs: int = Field(description="All of its successful runs.")


class Censored(Strict):
    """Settings with runs that did not reach the target accuracy: the time of the others is that of the lucky ones."""

    kind: Literal["censored"] = "censored"
    missed: list[Missed]


class NotLearned(Strict):
    """Settings whose time is that of no useful training."""

    kind: Literal["not_learned"] = "not_learned"
    reason: Literal["at_chance", "below_best", "unclear"] = Field(
        description="`unclear`: their runs' accuracies differ too much to tell."
    )
    accuracies: list[OfSetting] = Field(description="Mean accuracy of each, 0 to 1.")
    beside: float = Field(description="The accuracy of chance, or with `below_best` that of the best setting.")
    margin: float = Field(description="Shortfall from the best that the study allows.")
    few_runs: bool = Field(description="Whether one of them has too few runs to know their spread.")


class Unsuccessful(Strict):
    """Runs that ended in the same way for the same reason."""

    kind: Literal["unsuccessful"] = "unsuccessful"
    outcome: str
    message: str | None
    runs: list[str]


class DisturbedRuns(Strict):
    """Runs during which others crossed a limit of the study's ``evidence``."""

    kind: Literal["disturbed_runs"] = "disturbed_runs"
    kinds: dict[str, int] = Field(description="Number of records that crossed each limit, by its key.")
    runs: list[str]
    measured_again: int = Field(description="Number of runs whose disturbed record was excluded for a second one.")
    disturbed_again: list[str] = Field(description="Runs whose last record is marked, too.")


class RefusedRecords(Strict):
    """Records that do not fit their plan, their schema or their checksum; nothing of them is used."""

    kind: Literal["refused_records"] = "refused_records"
    files: list[str]
    reason: str = Field(description="Begins with the key that does not fit.")


class RefusedSamples(Strict):
    """Samples that are not those of the record beside them; nothing of them is used."""

    kind: Literal["refused_samples"] = "refused_samples"
    files: list[str]
    reason: str


class BrokenBlocks(Strict):
    """Blocks that a start began and did not end, whose records were excluded."""

    kind: Literal["broken_blocks"] = "broken_blocks"
    blocks: list[int]
    records: int


class FewReplicates(Strict):
    """Fewer replicates than an interval needs."""

    kind: Literal["few_replicates"] = "few_replicates"
    replicates: int


class SeveralStarts(Strict):
    """The runs come from several starts of the pipeline."""

    kind: Literal["several_starts"] = "several_starts"
    starts: int


class SeveralMachines(Strict):
    """The runs come from several machines, which may be of one kind."""

    kind: Literal["several_machines"] = "several_machines"
    machines: int


class MixedSoftware(Strict):
    """The runs used different software."""

    kind: Literal["mixed_software"] = "mixed_software"
    software: list[str]


class MixedWeights(Strict):
    """The runs started from different weights."""

    kind: Literal["mixed_weights"] = "mixed_weights"
    weights: list[str]


class UnrepeatedTraining(Strict):
    """The same training gave different weights on one device."""

    kind: Literal["unrepeated_training"] = "unrepeated_training"
    device: str
    weights: int = Field(description="Number of different sets of weights.")


class MixedImages(Strict):
    """The runs on one device used different container images."""

    kind: Literal["mixed_images"] = "mixed_images"
    device: str
    images: list[str] = Field(description="The first 12 characters of each digest.")


class DecodedBefore(Strict):
    """Some settings have their images on the device before the clock starts; the others decode them in every epoch."""

    kind: Literal["decoded_before"] = "decoded_before"
    others: list[str] = Field(description="The loaders that decode while the clock runs.")


class UnequalCircumstances(Strict):
    """The settings on one device had different numbers of CPU threads or of loader workers, and no factor says so."""

    kind: Literal["unequal_circumstances"] = "unequal_circumstances"
    what: Literal["threads", "workers"]
    device: str
    factor: str | None = Field(description="The factor whose levels had one number each; null where there is none.")
    counts: dict[str, int] = Field(description="By level of that factor; without one by `fewest` and `most`.")


class SharedGpu(Strict):
    """Other processes computed on the GPU when runs began."""

    kind: Literal["shared_gpu"] = "shared_gpu"
    runs: int


class BusyMachine(Strict):
    """The CPUs had other work when runs began."""

    kind: Literal["busy_machine"] = "busy_machine"
    percent: float = Field(description="Share of the CPUs that counts as busy.")
    runs: int


class Throttled(Strict):
    """The GPU's clock was held down."""

    kind: Literal["throttled"] = "throttled"
    runs: int
    reasons: list[str]


class MixedMachines(Strict):
    """The runs on one device come from different machines."""

    kind: Literal["mixed_machines"] = "mixed_machines"
    device: str
    names: list[str]


class MachineChanged(Strict):
    """The reference workload of a device changed during the study."""

    kind: Literal["machine_changed"] = "machine_changed"
    device: str
    host: bool = Field(description="Whether it is the reference workload of the CPUs beside the device.")
    fastest_seconds: float
    slowest_seconds: float


class SeparateStarts(Strict):
    """Levels that share no block with the others, so that the machine's change counts as theirs."""

    kind: Literal["separate_starts"] = "separate_starts"
    factor: str
    sets: list[list[str]]


class WideSpread(Strict):
    """Settings whose runs differ by a large standard deviation."""

    kind: Literal["wide_spread"] = "wide_spread"
    limit: float = Field(description="Standard deviation over the mean, from which a setting is listed.")
    spreads: list[OfSetting] = Field(description="Standard deviation over the mean of each.")


class SetAsideRun(Strict):
    """A run that is not analysed."""

    run: str
    setting: Setting
    reason: str
    seconds: float
    mean_seconds: float | None = Field(description="Mean of its setting; null where no run of it counts.")
    warm_up_seconds: float | None = Field(description="Null where the warm-up does not explain the distance.")
    usual_warm_up_seconds: float | None


class ExcludedRuns(Strict):
    """Runs that are kept, shown and not analysed, by the rules that were declared before any run."""

    kind: Literal["excluded_runs"] = "excluded_runs"
    runs: list[SetAsideRun]
    of: int = Field(description="Number of successful runs.")


class UnequalWork(Strict):
    """The settings train on different numbers of images."""

    kind: Literal["unequal_work"] = "unequal_work"
    least_images: int
    most_images: int
    causes: list[Literal["epochs", "data", "partial_batch"]] = Field(
        description="What differs: the number of epochs, the data set's images, or an epoch's images of equal data."
    )


class WholeBatch(Strict):
    """One batch holds the whole training set."""

    kind: Literal["whole_batch"] = "whole_batch"
    batch_size: int
    images: int


class NoSteadyStep(Strict):
    """Batch sizes with runs that have no step after the warm-up."""

    kind: Literal["no_steady_step"] = "no_steady_step"
    batch_sizes: list[int]


class WaitsForData(Strict):
    """Batch sizes at which training waits for data most of the time."""

    kind: Literal["waits_for_data"] = "waits_for_data"
    device: str
    batch_sizes: list[int]


class NeverSteady(Strict):
    """Runs whose step time still changed at the end."""

    kind: Literal["never_steady"] = "never_steady"
    runs: list[str]


class SlowSteps(Strict):
    """Steps that took far longer than the median step of their run."""

    kind: Literal["slow_steps"] = "slow_steps"
    steps: int
    runs: list[str]


class AboveCeiling(Strict):
    """Runs faster than the matrix product that was measured as the device's ceiling."""

    kind: Literal["above_ceiling"] = "above_ceiling"
    runs: list[str]
    share: float = Field(description="The largest share of the ceiling.")


class Drift(Strict):
    """The times of one group drift along the order of execution."""

    kind: Literal["drift"] = "drift"
    change: float = Field(description="Time at the last run over that at the first, by the fitted slope.")
    p: float = Field(description="Of the t test of the slope, levels accounted for.")


Caveat = Annotated[
    Unsuccessful
    | RefusedRecords
    | RefusedSamples
    | DisturbedRuns
    | BrokenBlocks
    | Censored
    | NotLearned
    | FewReplicates
    | SeveralStarts
    | SeveralMachines
    | MixedSoftware
    | MixedWeights
    | UnrepeatedTraining
    | MixedImages
    | UnequalCircumstances
    | SharedGpu
    | BusyMachine
    | Throttled
    | MixedMachines
    | MachineChanged
    | SeparateStarts
    | WideSpread
    | ExcludedRuns
    | UnequalWork
    | WholeBatch
    | NoSteadyStep
    | WaitsForData
    | DecodedBefore
    | NeverSteady
    | SlowSteps
    | AboveCeiling
    | Drift,
    Field(discriminator="kind"),
]
"""One thing that a reader must know before believing the numbers."""
