"""How far a study is: which of its planned runs have a record."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from study.artifacts.plan import Plan


@dataclass(frozen=True)
class Progress:
    """The planned runs of one study that are there, and those that are missing."""

    study: str
    planned: int
    """Runs that this machine can make, and those whose record is there although their device is absent."""
    there: int
    """Planned runs with a record that fits, whatever its outcome."""
    missing: dict[int, tuple[int, int]]
    """Missing and planned runs of each block that lacks some, by the block's number."""
    settings: list[str]
    """Short names of the settings without any run that is there, in the planned order."""
    refused: int = 0
    """Missing runs whose record is damaged or does not fit."""

    @property
    def whole(self) -> bool:
        """Whether every planned run is there."""
        return self.there == self.planned


def progress_of(plan: Plan, made: Collection[str], refused: Collection[str] = ()) -> Progress:
    """Return how far ``plan`` is, from the names of the runs with a record that fits, and with a refused one."""
    planned = [run for run in plan.runs if not run.unavailable or run.name in made]
    missing = [run for run in planned if run.name not in made]
    sizes, gaps = (Counter(run.block for run in runs) for runs in (planned, missing))
    begun = {run.setting.short for run in planned if run.name in made}
    return Progress(
        study=plan.name,
        planned=len(planned),
        there=len(planned) - len(missing),
        missing={block: (gaps[block], sizes[block]) for block in sorted(gaps)},
        settings=[name for name in dict.fromkeys(run.setting.short for run in planned) if name not in begun],
        refused=sum(run.name in refused for run in missing),
    )
