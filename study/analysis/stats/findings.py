"""The findings of the statistics: a closed set of kinds, each a small model of values.

`fit.json` holds findings and no sentences. ``study.analysis.wording`` has a function for each kind that makes its
sentence.
"""

from typing import Annotated, Literal

from pydantic import Field

from study.analysis.stats.fits import Bounds
from study.analysis.stats.usable import Estimate
from study.base.strict import Strict

Setting = dict[str, str | float]
"""Levels by the dotted key of their factor: a number for the curve's factor, which comes first, else a name."""


Doubt = Literal["another_law", "untested", "lack_of_fit", "wide_interval"]


# What the points of T(b) determine.


class TooFewPoints(Strict):
    """No law has a criterion."""

    kind: Literal["too_few_points"] = "too_few_points"


class Unreplicated(Strict):
    """Too few runs were repeated to tell chance from shape: most often none was."""

    kind: Literal["unreplicated"] = "unreplicated"
    law: str | None = Field(description="The law with the smallest criterion; null where none beats a constant.")


class EqualTimes(Strict):
    """Repeated runs took equal times, so that the noise is not known: a clock of whole seconds does that."""

    kind: Literal["equal_times"] = "equal_times"


class Drifted(Strict):
    """The machine changed by more than the batch sizes differ, and no difference between them shows."""

    kind: Literal["drifted"] = "drifted"
    machine_change: float = Field(description="Slowest state of the machine over its fastest.")
    level_change: float = Field(description="Largest mean of a batch size over the smallest.")


class NoDifference(Strict):
    """No batch size differs from another by more than the noise."""

    kind: Literal["no_difference"] = "no_difference"


class NoLaw(Strict):
    """Batch sizes differ, but no law beats a constant."""

    kind: Literal["no_law"] = "no_law"


class PowerLaw(Strict):
    """T(b) = Tmin + c / b^alpha: the coefficients of the power law are findings."""

    kind: Literal["power_law"] = "power_law"
    coefficients: dict[str, float]
    intervals: dict[str, Bounds]
    inverse_fits: bool = Field(description="Whether T0 + A/b fits as well, so that alpha = 1 is not excluded.")


class Turn(Strict):
    """The time falls with the batch size, and rises again: both ends are slower than the fastest beyond noise."""

    kind: Literal["turn"] = "turn"
    low: float = Field(description="The batch size below all that may be the fastest.")
    high: float = Field(description="The batch size above all that may be the fastest.")


class Rise(Strict):
    """The time rises with the batch size, and no fall before that shows."""

    kind: Literal["rise"] = "rise"


class OtherLaw(Strict):
    """A law fits best, and the exponent of the power law is no finding."""

    kind: Literal["other_law"] = "other_law"
    law: str
    coefficients: dict[str, float]
    intervals: dict[str, Bounds]
    doubt: Doubt = Field(
        description="Why the power law's coefficients are no findings: another law fits better; no replicates or too "
        "few batch sizes to test it; it misses the means by more than the noise; the interval of alpha is too wide."
    )
    misses: float | None = Field(
        description="Largest distance of a mean from the law, over the law, where the law lacks fit; null where it "
        "does not, or where that cannot be told."
    )
    alpha_interval: Bounds | None = Field(description="Of the power law.")


Verdict = Annotated[
    TooFewPoints | Unreplicated | EqualTimes | Drifted | NoDifference | NoLaw | PowerLaw | Turn | Rise | OtherLaw,
    Field(discriminator="kind"),
]
"""What the points of T(b) determine."""


class Noise(Strict):
    """Whether the relative noise is the same at all batch sizes, as every law and interval takes it to be."""

    kind: Literal["noise"] = "noise"
    p: float = Field(description="Of the test that the spread of log times does not change with their mean.")
    way: Literal["even", "grows", "shrinks"] = Field(description="`even`: no change shows.")


# The answer to the study's question.


class NothingSucceeded(Strict):
    """No run succeeded."""

    kind: Literal["nothing_succeeded"] = "nothing_succeeded"
    group: str | None = Field(description="Null: in the whole study.")


class OnlyLevel(Strict):
    """The time of a group with one level."""

    kind: Literal["only_level"] = "only_level"
    group: str
    time: Estimate


class Smallest(Strict):
    """The smallest of times that were measured once each."""

    kind: Literal["smallest"] = "smallest"
    group: str
    total: str = Field(description="Column of the table of timings that is compared.")
    factor: str | None = Field(description="Null where the levels differ in several factors.")
    level: str
    time: Estimate


class Fastest(Strict):
    """The level with the smallest mean, and whether it can be told from the others."""

    kind: Literal["fastest"] = "fastest"
    group: str
    factor: str | None = Field(description="Null where the levels differ in several factors.")
    level: str
    time: Estimate
    tied: list[str] = Field(description="Levels that cannot be told from the fastest.")
    machine: Literal["explains", "unclear"] | None = Field(
        description="`explains`: the levels differ only until the machine's change is accounted for. `unclear`: the "
        "runs are too few to tell the machine's part in the differences."
    )
    machine_change: float | None = Field(description="Slowest yardstick over the fastest; null without a yardstick.")
    curve: Verdict | None = Field(description="Null without a curve, or where the machine's change forbids one.")


class RatioAt(Strict):
    """A ratio of two times at one setting."""

    at: Setting
    ratio: Estimate
    slower_seconds: float
    faster_seconds: float


class Accuracies(Strict):
    """Two accuracies that differ."""

    at: Setting
    slower: float = Field(description="0 to 1.")
    faster: float = Field(description="0 to 1.")


class Contrast(Strict):
    """The time at one level of the contrast over that at another: the smallest and the largest of the ratios."""

    kind: Literal["contrast"] = "contrast"
    contrast: str = Field(description="Dotted key of the factor.")
    slower: str
    faster: str
    least: RatioAt
    most: RatioAt
    same_images: bool = Field(description="Whether both trained on the same number of images, at every setting.")
    same_precision: bool = Field(description="True where the precision is the contrast.")
    accuracies: Accuracies | None = Field(description="The largest difference; null where none shows.")
    explained: list[Setting] = Field(description="Where the difference is gone once the machine is accounted for.")
    unclear: list[Setting] = Field(description="Where the runs are too few to tell the machine's part.")


class Bottleneck(Strict):
    """Times of one configuration with the loader alone, with the training alone, and with both."""

    kind: Literal["bottleneck"] = "bottleneck"
    at: Setting
    loader_seconds: float
    training_seconds: float
    both_seconds: float
    limit: Literal["loader", "training", "both"] | None = Field(description="Null where it cannot be told.")


class NullControl(Strict):
    """Each configuration over itself: the ratio that is furthest from 1, and the intervals that exclude 1."""

    kind: Literal["null_control"] = "null_control"
    at: Setting
    ratio: float
    intervals: int = Field(description="0 without replicates.")
    outside: int = Field(description="Intervals that exclude 1.")


Answer = Annotated[
    NothingSucceeded | OnlyLevel | Smallest | Fastest | Contrast | Bottleneck | NullControl,
    Field(discriminator="kind"),
]
"""One statement of the answer."""


# What a reader must know before believing the numbers.


class Unsuccessful(Strict):
    """Runs that ended in the same way for the same reason."""

    kind: Literal["unsuccessful"] = "unsuccessful"
    outcome: str
    message: str | None
    runs: list[str]


class FewReplicates(Strict):
    """Fewer replicates than an interval needs."""

    kind: Literal["few_replicates"] = "few_replicates"
    replicates: int


class SeveralStarts(Strict):
    """The runs come from several starts of the pipeline."""

    kind: Literal["several_starts"] = "several_starts"
    starts: int


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
    """The yardstick of a device changed during the study."""

    kind: Literal["machine_changed"] = "machine_changed"
    device: str
    host: bool = Field(description="Whether it is the yardstick of the CPUs beside the device.")
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
    spreads: dict[str, float] = Field(description="Standard deviation over the mean, by setting.")


class FarRun(Strict):
    """A setting with runs far from its median, and what sets them apart."""

    setting: str
    warm_up_seconds: float | None = Field(description="Null where the warm-up does not explain the distance.")
    usual_warm_up_seconds: float | None
    first_of_start: bool = Field(description="Whether each of them is the first run of a start of the pipeline.")


class FarRuns(Strict):
    """Runs far from the median of their setting."""

    kind: Literal["far_runs"] = "far_runs"
    limit: float = Field(description="Distance over the median, from which a run is far.")
    settings: list[FarRun]


class UnequalWork(Strict):
    """The settings train on different numbers of images."""

    kind: Literal["unequal_work"] = "unequal_work"
    factor: str | None
    least_images: int
    most_images: int


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
    | FewReplicates
    | SeveralStarts
    | MixedSoftware
    | MixedWeights
    | UnrepeatedTraining
    | MixedImages
    | SharedGpu
    | BusyMachine
    | Throttled
    | MixedMachines
    | MachineChanged
    | SeparateStarts
    | WideSpread
    | FarRuns
    | UnequalWork
    | WholeBatch
    | NoSteadyStep
    | WaitsForData
    | NeverSteady
    | SlowSteps
    | AboveCeiling
    | Drift,
    Field(discriminator="kind"),
]
"""One thing that a reader must know before believing the numbers."""


class MoreReplicates(Strict):
    """How many more replicates would tell the fastest level from those tied with it, with a power of 80% at 95%."""

    fastest: str
    needed: dict[str, int] = Field(description="By level, the smallest number first.")
    hopeless: list[str] = Field(description="Levels that no number of replicates up to the limit would tell from it.")
    limit: int = Field(description="The largest number that was tried.")
