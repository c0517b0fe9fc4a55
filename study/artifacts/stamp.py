"""The stamp of a run: the file that Snakemake owns in place of the record, so that it can delete no record.

Snakemake removes the output of a job that it calls failed, such as one that is older than an input after the clock was
set back. A stamp is made from the record, and can be made again at any time.
"""

from pathlib import Path

from study.artifacts.layout import Results
from study.base.files import stat_of, write_if_changed, write_whole

LEFT = "left by the time budget\n"
"""The stamp of a run that has no record, because a time budget left it: the report is made without it."""


def write_stamp(study: str, record: str, files: Results) -> None:
    """Write the stamp of the record of this file name: the sizes and times of the record and of its telemetry.

    A record that was edited or replaced therefore makes the analysis again. Leave a stamp that is current as it is.
    """
    paths = [files.record(study, record), files.telemetry(study, record)]
    text = "".join(f"{stat_of(path)}\n" for path in paths if path.exists())
    write_if_changed(files.stamp(study, record), text)


def stamp_as_left(study: str, record: str, files: Results) -> None:
    """Write the stamp of a run that the time budget left."""
    write_whole(files.stamp(study, record), LEFT)


def forget_left(study: str, files: Results) -> None:
    """Remove the stamps of the runs that a time budget left: their records are still to be made."""
    for path in files.stamps(study).glob("*"):
        if _is_left(path):
            path.unlink()


def _is_left(stamp: Path) -> bool:
    return stamp.is_file() and stamp.read_text(encoding="ascii", errors="replace") == LEFT


def restamp(study: str, records: list[str], files: Results) -> None:
    """Make each stamp agree with its record: write it if the record is there, and remove it if not.

    The stamps of runs that a time budget left are not touched: another start may be at work.
    """
    for record in records:
        stamp = files.stamp(study, record)
        if files.record(study, record).exists():
            write_stamp(study, record, files)
        elif stamp.exists() and not _is_left(stamp):
            stamp.unlink()
