"""One start of the pipeline in one study: the file ``session.json``, and the stamps of its runs.

``session.json`` tells a block that was broken off from one that was measured whole, and from runs that were planned
later. A stamp is the file that Snakemake owns in place of a record, so that it can delete no record: it removes the
output of a job that it calls failed, such as one that is older than an input after the clock was set back. A stamp is
made from the record, and can be made again at any time.
"""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from study.artifacts.layout import Results
from study.base.files import stat_of, write_if_changed, write_whole
from study.base.strict import Strict


class SessionBlock(Strict):
    """The runs that a start means to make in one block."""

    block: int = Field(ge=1, le=2**31)
    records: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+\.json$")], str]
    """The key of each run by the file name of its record, in the order of execution."""
    ended: bool = Field(False, description="Whether each of the runs was made.")
    deferred: bool = Field(False, description="Whether the time budget leaves the block for another start.")


class Session(Strict):
    """What a start means to do. The defaults are those of a run that is started by hand."""

    number: int = Field(1, ge=1, le=10**9)
    name: str = Field("by-hand", description="When it began, in UTC; the same in all of its studies.")
    warm_up_run: bool = False
    quiet_wait_seconds: float = Field(0, ge=0, allow_inf_nan=False)
    deadline: float | None = Field(None, description="End of the time budget in epoch seconds; null without one.")
    blocks: list[SessionBlock] = []
    expected: dict[str, float] = Field({}, description="Seconds that a run is expected to take, by its key.")

    def block(self, record: str) -> SessionBlock | None:
        """Return the block with the record of this file name. None if the start does not mean to make it."""
        return next((block for block in self.blocks if record in block.records), None)

    def with_blocks(self, *changed: SessionBlock) -> "Session":
        """Return the start with these blocks in place of those of the same numbers."""
        new = {block.block: block for block in changed}
        return self.model_copy(update={"blocks": [new.get(block.block, block) for block in self.blocks]})


def read_session(path: Path) -> Session | None:
    """Return what a start wrote to ``path``, or None if there is none. Raise :class:`StudyError` if it is damaged."""
    return Session.read(path, "remove it to measure on with the blocks as they are") if path.exists() else None


def write_session(session: Session, path: Path) -> None:
    """Write ``session`` to ``path`` in one piece."""
    write_whole(path, session.model_dump_json(indent=1))


DEFERRED = "deferred by the time budget\n"
"""The stamp of a run that has no record, because a time budget left it: the report is made without it."""


def write_stamp(study: str, record: str, files: Results) -> None:
    """Write the stamp of the record of this file name: the sizes and times of the record and of its telemetry.

    A record that was edited or replaced therefore makes the analysis again. Leave a stamp that is current as it is.
    """
    paths = [files.record(study, record), files.telemetry(study, record)]
    text = "".join(f"{stat_of(path)}\n" for path in paths if path.exists())
    write_if_changed(files.stamp(study, record), text)


def stamp_as_deferred(study: str, record: str, files: Results) -> None:
    """Write the stamp of a run that the time budget left."""
    write_whole(files.stamp(study, record), DEFERRED)


def remove_deferred_stamps(study: str, files: Results) -> None:
    """Remove the stamps of the runs that a time budget left: their records are still to be made."""
    for path in files.stamps(study).glob("*"):
        if _is_deferred(path):
            path.unlink()


def _is_deferred(stamp: Path) -> bool:
    return stamp.is_file() and stamp.read_text(encoding="ascii", errors="replace") == DEFERRED


def restamp(study: str, records: list[str], files: Results) -> None:
    """Make each stamp agree with its record: write it if the record is there, and remove it if not.

    The stamps of runs that a time budget left are not touched: another start may be at work.
    """
    for record in records:
        stamp = files.stamp(study, record)
        if files.record(study, record).exists():
            write_stamp(study, record, files)
        elif stamp.exists() and not _is_deferred(stamp):
            stamp.unlink()
