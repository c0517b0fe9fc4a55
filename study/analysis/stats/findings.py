"""The findings of the statistics: a closed set of kinds, each a small model of values.

`fit.json` holds findings and no sentences. ``study.analysis.wording`` has a function for each kind that makes its
sentence.
"""

from typing import Annotated, Literal

from pydantic import Field

from study.analysis.stats.fits import Bounds
from study.analysis.stats.gate import Undetermined, Unfair
from study.analysis.stats.usable import Estimate
from study.artifacts.setting import Setting
from study.base.strict import Strict

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
    """The machine changed by more than the levels differ, and no difference between them shows."""

    kind: Literal["drifted"] = "drifted"
    machine_change: float = Field(description="Slowest state of the machine over its fastest.")
    level_change: float = Field(description="Largest mean of a level over the smallest.")


class NoDifference(Strict):
    """No level differs from another by more than the noise."""

    kind: Literal["no_difference"] = "no_difference"


class NoLaw(Strict):
    """Levels differ, but no law beats a constant."""

    kind: Literal["no_law"] = "no_law"


class PowerLaw(Strict):
    """T(b) = Tmin + c / b^alpha: the coefficients of the power law are findings."""

    kind: Literal["power_law"] = "power_law"
    coefficients: dict[str, float]
    intervals: dict[str, Bounds]
    inverse_fits: bool = Field(description="Whether T0 + A/b fits about as well, by its criterion.")


class Turn(Strict):
    """The time falls along the axis, and rises again: both ends are slower than the fastest beyond noise."""

    kind: Literal["turn"] = "turn"
    low: float = Field(description="The level below all that may be the fastest.")
    high: float = Field(description="The level above all that may be the fastest.")


class Rise(Strict):
    """The time rises along the axis, and no fall before that shows."""

    kind: Literal["rise"] = "rise"


class Zigzag(Strict):
    """The time goes up and down along the axis, beyond the noise, and not by one fall and one rise after it."""

    kind: Literal["zigzag"] = "zigzag"


class OtherLaw(Strict):
    """A law fits best, and the exponent of the power law is no finding."""

    kind: Literal["other_law"] = "other_law"
    law: str
    coefficients: dict[str, float]
    intervals: dict[str, Bounds]
    doubt: Doubt = Field(
        description="Why the power law's coefficients are no findings: another law fits better; no replicates or too "
        "few levels to test it; it misses the means by more than the noise; the interval of alpha is too wide."
    )
    misses: float | None = Field(
        description="Largest distance of a mean from the law, over the law, where the law lacks fit; null where it "
        "does not, or where that cannot be told."
    )
    alpha_interval: Bounds | None = Field(description="Of the power law.")


Verdict = Annotated[
    TooFewPoints
    | Unreplicated
    | EqualTimes
    | Drifted
    | NoDifference
    | NoLaw
    | PowerLaw
    | Turn
    | Rise
    | Zigzag
    | OtherLaw,
    Field(discriminator="kind"),
]
"""What the points of T(b) determine."""


class Noise(Strict):
    """Whether the relative noise is the same at all levels, as every law takes it to be."""

    kind: Literal["noise"] = "noise"
    p: float = Field(description="Of the test that the spread of log times does not change with their mean.")
    way: Literal["even", "grows", "shrinks"] = Field(description="`even`: no change shows.")


# The answer to the study's question.


class NothingSucceeded(Strict):
    """No run succeeded."""

    kind: Literal["nothing_succeeded"] = "nothing_succeeded"
    group: Setting | None = Field(description="Null: in the whole study.")


class OnlyLevel(Strict):
    """The time of a group with one level."""

    kind: Literal["only_level"] = "only_level"
    group: Setting
    time: Estimate
    accuracy: float | None = Field(None, description="Mean accuracy of its runs, 0 to 1; null where not known.")


class CannotSay(Strict):
    """The means of some levels are not determined, and one of these may be the fastest; or none is a candidate."""

    kind: Literal["cannot_say"] = "cannot_say"
    group: Setting
    factor: str | None = Field(description="Null where the levels differ in several factors.")
    reasons: dict[str, Undetermined | Unfair] = Field(description="By the label of the level.")
    more_runs: int | None = Field(description="More runs a level that could decide it; null where runs cannot.")
    only: bool = Field(default=False, description="Whether the group has a single level.")


class Fastest(Strict):
    """The level with the smallest mean, and whether it can be told from the others; no answer with ``machine``."""

    kind: Literal["fastest"] = "fastest"
    group: Setting
    factor: str | None = Field(description="Null where the levels differ in several factors.")
    level: Setting
    time: Estimate
    accuracy: float | None = Field(None, description="Mean accuracy of its runs, 0 to 1; null where not known.")
    tied: list[str] = Field(
        description="Labels of the levels that cannot be told from the fastest; those below are labels, too."
    )
    equivalent: list[str] = Field(description="Those of them whose time is the same within the study's margin.")
    left_out: list[str] = Field(description="Levels whose means are not determined, and which are slower.")
    unfair: dict[str, Unfair] = Field(description="Levels that are no candidates, with the reason.")
    slower: list[str] = Field(description="Candidates that are slower by more than the noise.")
    missing: list[str] = Field(description="Levels without a run that counts.")
    machine: Literal["explains", "unclear"] | None = Field(
        description="`explains`: the levels differ only until the machine's change is accounted for. `unclear`: the "
        "runs are too few to tell the machine's part in the differences."
    )
    machine_change: float | None = Field(
        description="Slowest reference workload over the fastest; null without a reference workload."
    )
    curve: Verdict | None = Field(description="Null without a curve, or where the machine's change forbids one.")


class RatioAt(Strict):
    """A ratio of two times at one setting."""

    at: Setting
    ratio: Estimate
    together: Estimate = Field(description="With bounds that hold for all settings at once.")
    slower_seconds: float
    faster_seconds: float


class Difference(Strict):
    """A circumstance in which the sides of a contrast differ, beside the contrast itself: their ratio holds its part,
    too."""

    what: Literal["threads", "workers", "precision", "images", "accuracy"]
    at: Setting = Field(description="Where it is largest; of no factor where it is the same at every setting.")
    slower: float | str
    faster: float | str


class Contrast(Strict):
    """The time at one level of the contrast over that at another: the smallest and the largest of the ratios."""

    kind: Literal["contrast"] = "contrast"
    contrast: str = Field(description="Dotted key of the factor.")
    slower: str
    faster: str
    least: RatioAt
    most: RatioAt
    differs: list[Difference] = Field(description="The largest difference of each kind.")
    explained: list[Setting] = Field(description="Where the difference is gone once the machine is accounted for.")
    unclear: list[Setting] = Field(description="Where the runs are too few to tell the machine's part.")
    alone: list[Setting] = Field(
        default=[], description="Where runs count on one of the two sides alone, or never in one block: no ratio."
    )


class NoRatio(Strict):
    """Runs count on both sides of a contrast, and no two of them met in one block at one setting."""

    kind: Literal["no_ratio"] = "no_ratio"
    contrast: str = Field(description="Dotted key of the factor.")
    slower: str
    faster: str


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


class Combination(Strict):
    """The best setting of all switches, against the one with the first level of each."""

    kind: Literal["combination"] = "combination"
    group: Setting
    base: Setting
    best: Setting
    times_as_fast: Estimate = Field(description="Time of `base` over that of `best`.")


class Way(Strict):
    """The fastest level of a group."""

    group: Setting
    factor: str | None = Field(description="Null where the levels differ in several factors.")
    level: Setting
    seconds: float
    times: Estimate | None = Field(
        description="Its time over that of the fastest of all, with bounds that hold for all groups at once; null for "
        "that one itself."
    )


class Ways(Strict):
    """The fastest level of each group beside those of the others, the fastest of all first."""

    kind: Literal["ways"] = "ways"
    base: Setting = Field(description="The study's first group: the others are named by what they do otherwise.")
    ways: list[Way] = Field(min_length=2)
    without: list[Setting] = Field(description="Groups that have no answer of their own.")


Answer = Annotated[
    Ways
    | Combination
    | NothingSucceeded
    | OnlyLevel
    | CannotSay
    | Fastest
    | Contrast
    | NoRatio
    | Bottleneck
    | NullControl,
    Field(discriminator="kind"),
]
"""One statement of the answer."""


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
