"""A run that is far from the runs of the same setting, and why: a mark for the terminal, of no weight in the analysis.

The rule is that of the analysis for single outliers (``study.analysis.stats.usable``), with what is there so far.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from statistics import median

from study.artifacts.duration import DEVIATIONS, FACTOR, TO_DEVIATION
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.record_store import read_record
from study.artifacts.run import Run
from study.artifacts.samples import Measurement
from study.base.errors import StudyError

MOST_SIBLINGS = 9
"""Number of siblings that are read at most: the latest ones."""


def siblings(plan: Plan, run: Run, files: Results) -> list[Record]:
    """Return the records of the runs of the same setting that succeeded, in other blocks."""
    like = [other for other in plan.runs if other.key == run.key and other.block != run.block]
    there = [path for other in like if (path := files.record(plan.name, other.file)).exists()]
    found = []
    for path in there[-MOST_SIBLINGS:]:
        with suppress(StudyError):  # a damaged record tells nothing, and stops nothing
            found.append(read_record(path))
    return [record for record in found if record.outcome == "ok"]


def check_outlier(record: Record, others: Sequence[Record]) -> str | None:
    """Return that ``record`` is far from the records of the same setting, and why; None if it is not."""
    if record.measurement is None:
        return None
    times = [other.measurement.fit_seconds for other in others if other.measurement]
    if not times or not all(time > 0 for time in [*times, record.measurement.fit_seconds]):
        return None
    usual = median(times)
    change = math.log(record.measurement.fit_seconds / usual)
    spread = TO_DEVIATION * median(abs(math.log(time / usual)) for time in times)
    if abs(change) <= max(DEVIATIONS * spread, math.log(FACTOR)):
        return None
    who = "others" if len(times) > 1 else "the other"
    return f"OUTLIER among its siblings ({who} {usual:.2f} s): {_why(record, others, change)}"


PARTS: dict[str, Callable[[Measurement], float]] = {
    "warm-up": lambda run: sum(step.seconds for step in run.steps if step.warm_up),
    "waiting for data": lambda run: sum(step.data_wait_seconds for step in run.steps if not step.warm_up),
    "computing": lambda run: sum(step.seconds - step.data_wait_seconds for step in run.steps if not step.warm_up),
    "validation": lambda run: sum(epoch.valid_seconds for epoch in run.epochs),
}
"""Parts of a run's time, in seconds."""


def _why(record: Record, others: Sequence[Record], change: float) -> str:
    """Return what goes with a change of the time, a logarithm: the machine, others on it, or a part of the run."""
    reasons = []
    machines = [other.reference_workload.seconds for other in others if other.reference_workload]
    if record.reference_workload and machines:
        machine = record.reference_workload.seconds / median(machines)
        if math.log(machine) / change >= 0.5:
            times = f"{max(machine, 1 / machine):.1f} times"
            reasons.append(f"the machine itself was {times} as {'slow' if machine > 1 else 'fast'}")
    if record.disturbed:
        reasons.append(f"disturbed ({', '.join(record.disturbed)})")
    return "; ".join([*reasons, _part(record, others)])


def _part(record: Record, others: Sequence[Record]) -> str:
    """Return the part of the run that holds half of the difference or more."""
    assert record.measurement
    rest = [other.measurement for other in others if other.measurement]
    longer = record.measurement.fit_seconds - median(other.fit_seconds for other in rest)
    shares = {
        name: (part(record.measurement) - median(part(other) for other in rest)) / longer
        for name, part in PARTS.items()
    }
    most = max(shares, key=lambda name: shares[name])
    took = "longer" if longer > 0 else "less time"
    return f"{most} took {took}" if shares[most] >= 0.5 else f"all of it took {took}"
