"""What a reader must know before believing the numbers: one class for each caveat, from its
detection to its words."""

from typing import Annotated, get_args

from pydantic import Field

from study.analysis.caveats.base import OneCaveat
from study.analysis.caveats.conditions import (
    CarryOver,
    CensoredSettings,
    DecodedBefore,
    MachineChanged,
    MayLearnLess,
    NotLearned,
    OwnClock,
    RandomWeights,
    ShortCommand,
    Starts,
    UnknownWork,
)
from study.analysis.caveats.runs import (
    DisturbedRuns,
    ExcludedRuns,
    OutlierRuns,
    RefusedFiles,
    Unsuccessful,
)

Every = (
    UnknownWork
    | NotLearned
    | CensoredSettings
    | MayLearnLess
    | DecodedBefore
    | OwnClock
    | ShortCommand
    | OutlierRuns
    | ExcludedRuns
    | Unsuccessful
    | RefusedFiles
    | DisturbedRuns
    | MachineChanged
    | CarryOver
    | Starts
    | RandomWeights
)
Caveat = Annotated[Every, Field(discriminator="kind")]
"""One thing that a reader must know before believing the numbers; the kinds stand in the order of
their importance."""
KINDS: tuple[type[OneCaveat], ...] = get_args(Every)
"""Each kind, the most important first."""
