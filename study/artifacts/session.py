"""One start of the pipeline in one study: the file ``session.json``, and the number that its records share."""

import re
from pathlib import Path

from pydantic import Field

from study.artifacts.record import is_readable
from study.base.strict import Strict

SESSION = re.compile(r'^ "session": (\d{1,9}),?$', re.MULTILINE)
"""A top-level key of a record as it is written, with one space before it."""


class Session(Strict):
    """What is the same in every run of a start. The defaults are those of a block that is measured by hand."""

    number: int = Field(1, ge=1, le=10**9)
    name: str = Field("by-hand", description="When it began, in UTC; the same in all of its studies.")
    warm_up_run: bool = False
    quiet_wait_seconds: float = Field(0, ge=0, allow_inf_nan=False)
    deadline: float | None = Field(None, description="End of the time budget in epoch seconds; null without one.")


def read_session(path: Path) -> Session:
    """Return what a start wrote to ``path``; that of a block by hand, if there is none.

    Raise :class:`StudyError` if it is damaged.
    """
    return Session.read(path, "the next start writes it anew") if path.exists() else Session()


def next_session(folder: Path) -> int:
    """Return a number that no session of a study's records has, excluded or not: the one after the highest."""
    return 1 + max(map(_session_of, folder.rglob("*.json")), default=0)


def _session_of(path: Path) -> int:
    """Return the session of the record in a file, without checking it; 0 if there is none."""
    if not is_readable(path):
        return 0
    match = SESSION.search(path.read_text(encoding="utf-8", errors="replace"))
    return int(match.group(1)) if match else 0
