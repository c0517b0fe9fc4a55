"""How long the runs of a study took, and so how long each is expected to take."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from study.artifacts.record_store import SESSION, is_readable

# Read from the text of a record, as ``SESSION`` is: to check thousands of records takes minutes.
SECONDS = re.compile(r'^ "process_seconds": ([0-9.eE+-]{1,30}),?$', re.MULTILINE)
STARTED = re.compile(r'^ "started": "([0-9T:.+-]{1,40})",?$', re.MULTILINE)


@dataclass(frozen=True, order=True)
class Took:
    """One run in time: its session, its start in epoch seconds, and the seconds that its process took."""

    session: int
    started: float
    seconds: float


def expected_seconds(records: Mapping[Path, str]) -> dict[str, float]:
    """Return the expected seconds of a run by its key, which all runs of a setting share; ``records`` holds their keys.

    They go from its start to the start of the next run: the median of its processes, and the median of what lay between
    two runs. A record that cannot be read tells no time.
    """
    measured = sorted((one, key) for path, key in records.items() if (one := took(path)))
    pauses = [
        max(0.0, later.started - one.started - one.seconds)
        for (one, _), (later, _) in pairwise(measured)
        if one.session == later.session
    ]
    between = median(pauses) if pauses else 0.0
    seconds: dict[str, list[float]] = {}
    for one, key in measured:
        seconds.setdefault(key, []).append(one.seconds)
    return {key: median(every) + between for key, every in seconds.items()}


def took(record: Path) -> Took | None:
    """Return when the run of a record took how long, without checking the record; None if it does not say."""
    if not is_readable(record):
        return None
    text = record.read_text(encoding="utf-8", errors="replace")
    seconds, started, session = (pattern.search(text) for pattern in (SECONDS, STARTED, SESSION))
    if not (seconds and started and session):
        return None
    try:
        took, since = float(seconds.group(1)), datetime.fromisoformat(started.group(1)).timestamp()
    except (ValueError, OverflowError):
        return None
    return Took(int(session.group(1)), since, took) if math.isfinite(took) else None
