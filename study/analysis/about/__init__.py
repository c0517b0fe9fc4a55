"""What was run on what, as the records tell it."""

from collections.abc import Sequence

import pandas as pd
from pydantic import Field

from study.analysis.about.epochs import EpochGroup, epochs_of
from study.analysis.about.facts import facts_of
from study.analysis.stats.usable import counted
from study.artifacts.checked import Records
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.strict import Strict


class About(Strict):
    """What was run on what."""

    facts: dict[str, str] = Field({}, description="By name; a fact that differs between runs has all of its values.")
    epochs: list[EpochGroup] = Field([], description="Times, losses and accuracies of each epoch, of runs that count.")


def about(plan: Plan, frame: pd.DataFrame, found: Records, warm_up_runs: Sequence[Record]) -> About:
    """Return what the records of a plan, and the warm-up runs of every start, tell; ``frame`` is the plan's table."""
    records = found.included
    return About(
        facts=facts_of(plan, records, warm_up_runs), epochs=epochs_of(plan, records, set(counted(frame)["run"]))
    )
