"""What a reader must know before believing the numbers: one class for each caveat, from its
detection to its words."""

from collections.abc import Sequence
from typing import Annotated, get_args

import pandas as pd
from pydantic import Field

from study.analysis.answers.group import Group
from study.analysis.caveats.base import OneCaveat, Seen
from study.analysis.caveats.conditions import (
    Censored,
    DecodedBefore,
    MachineChanged,
    MayLearnLess,
    NotLearned,
    RandomWeights,
    Starts,
)
from study.analysis.caveats.runs import DisturbedRuns, ExcludedRuns, FarRuns, Refused, Unsuccessful
from study.analysis.groups import GroupFit
from study.artifacts.checked import Records
from study.config.study import Study

Every = (
    NotLearned
    | Censored
    | MayLearnLess
    | DecodedBefore
    | FarRuns
    | ExcludedRuns
    | Unsuccessful
    | Refused
    | DisturbedRuns
    | MachineChanged
    | Starts
    | RandomWeights
)
Caveat = Annotated[Every, Field(discriminator="kind")]
"""One thing that a reader must know before believing the numbers; the kinds stand in the order of
their importance."""
KINDS: tuple[type[OneCaveat], ...] = get_args(Every)


def find_caveats(
    study: Study,
    frame: pd.DataFrame,
    fitted: Sequence[GroupFit],
    groups: Sequence[Group],
    records: Records,
) -> list[Caveat]:
    """Return every caveat of a study, the most important first.

    ``frame`` is its table of timings with the reasons for exclusions, ``fitted`` and ``groups`` are
    its groups, and ``records`` those of its runs.
    """
    seen = Seen(study, groups, frame=frame, fitted=fitted, records=records)
    found: list[Caveat] = []
    for kind in KINDS:
        found.extend(kind.find(seen))  # type: ignore[arg-type]
    return found
