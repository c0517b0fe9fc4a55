"""A block of a study: the runs that one process measures one after the other, and the file that
says they are there.

``results/<study>/blocks/<number>-<digest>.json`` is an index of the block's records. It holds
nothing but what they say, so that it can be made again from them, byte for byte. The records are
the truth: whatever deletes an index costs a moment, and no run. A level that was added later makes
a block file of its own, with the runs of that level alone.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, NamedTuple

from pydantic import Field

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record import is_readable
from study.artifacts.record_store import read_record
from study.artifacts.run import Run
from study.artifacts.setting import slug
from study.base.errors import StudyError
from study.base.files import (
    digest,
    file_sha256,
    json_sha256,
    package_sha256,
    write_if_changed,
    write_whole,
)
from study.base.strict import Strict

NAME = re.compile(r"[0-9]{1,10}-[0-9a-f]{8}(\.[A-Za-z0-9_.-]+)?")
"""The name of a block: its number, a digest of its runs, and its class of machine, if it asks for
one."""


class Measured(Strict):
    """One record of a block. A damaged one tells no more than its name and its checksum."""

    record: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+\.json$")]
    """File name of the record."""
    key: str
    sha256: str | None = None
    """Checksum of the record's file."""
    session: int | None = None
    started: str | None = None
    seconds: float | None = Field(None, allow_inf_nan=False)
    """Seconds that its process took."""
    outcome: str | None = None


class BlockFile(Strict):
    """The index of a block: what its records say, in the order of execution."""

    runs: list[Measured] = []
    left_by: str | None = None
    """The start that left the block to another one, for lack of time; it holds no run then."""


class Block(NamedTuple):
    """Runs of one replicate that are measured together, in the order of execution."""

    study: str
    number: int
    name: str
    """The name of its file, without the ending."""
    runs: Sequence[Run]
    outdated: bool = False
    """Whether its file is there and says something else than its records: it is damaged, a start
    left the block, or a record was edited."""

    def missing(self, files: Results) -> list[Run]:
        """Return the runs that have no record. A broken link in the place of one counts as
        there."""
        folder = files.records(self.study)
        return [run for run in self.runs if not os.path.lexists(f"{folder}/{run.file}")]

    def write(self, files: Results) -> None:
        """Write the index of its records, and remove each older one that names any of them."""
        runs = [_measured(self.study, run.file, run.key, files) for run in self.runs]
        index = BlockFile(runs=runs).model_dump_json(indent=1, exclude_none=True)
        write_if_changed(files.block(self.study, self.name), index)
        own = {run.file for run in self.runs}
        for path, other in block_files(self.study, files, f"{self.number}-*"):
            if path.stem != self.name and other and own & {run.record for run in other.runs}:
                path.unlink(missing_ok=True)


def name_of_block(number: int, records: Iterable[str], machine: str | None = None) -> str:
    """Return the name of the block with the records of these file names."""
    return f"{number}-{digest(sorted(records))}" + (f".{slug(machine)}" if machine else "")


def _measured(study: str, record: str, key: str, files: Results) -> Measured:
    path = files.record(study, record)
    named = Measured(
        record=record, key=key, sha256=file_sha256(path) if is_readable(path) else None
    )
    with suppress(StudyError, OSError):
        found = read_record(path)
        told = {
            "session": found.session,
            "started": found.started,
            "seconds": found.process_seconds,
            "outcome": found.outcome,
        }
        return named.model_copy(update=told)
    return named


def block_files(
    study: str, files: Results, names: str = "*"
) -> Iterator[tuple[Path, BlockFile | None]]:
    """Yield each index of ``study`` with its path, or those that match a pattern of ``names``; None
    for a damaged one, which can be made again."""
    for path in sorted(files.blocks(study).glob(f"{names}.json")):
        if not NAME.fullmatch(path.stem):
            continue
        try:
            yield path, BlockFile.of_file(path)
        except (StudyError, OSError):
            yield path, None


def blocks_of(plan: Plan, files: Results, apart: bool = False) -> list[Block]:
    """Return every block of ``plan``, in their order.

    Runs that a file of a block names and whose records are there stay together. The others of a
    replicate make a block; those of each class of machine one of their own, if these are to be had
    ``apart``. A run whose device is absent counts if its record is there.
    """
    there = _records(plan.name, files)
    named = {}
    outdated = set()
    for path, index in block_files(plan.name, files):
        records = [run.record for run in index.runs] if index else []
        left = [record for record in records if record in there]
        whole = len(left) == len(records)
        name = path.stem if whole else name_of_block(int(path.stem.partition("-")[0]), left)
        named.update(dict.fromkeys(left, name))
        if (
            index is None
            or index.left_by
            or (whole and _edited(plan.name, index, path, there, files))
        ):
            outdated.add(path.stem)
    grouped: dict[tuple[int, str | None, bool, str | None], list[Run]] = {}
    for run in plan.runs:
        if run.unavailable and run.file not in there:
            continue
        made = named.get(run.file)
        machine = run.settings.machine if apart and not made else None
        grouped.setdefault(
            (run.block, made, bool(run.unavailable) and not made, machine), []
        ).append(run)
    found = []
    for (number, made, _, machine), runs in grouped.items():
        name = made or name_of_block(number, [run.file for run in runs], machine)
        found.append(Block(plan.name, number, name, runs, name in outdated))
    return found


def _records(study: str, files: Results) -> dict[str, int]:
    """Return the time of each record of a study, in ns, by its file name."""
    with suppress(FileNotFoundError), os.scandir(files.records(study)) as found:
        return {
            one.name: one.stat(follow_symlinks=False).st_mtime_ns
            for one in found
            if one.name.endswith(".json")
        }
    return {}


def _edited(
    study: str, index: BlockFile, path: Path, there: Mapping[str, int], files: Results
) -> bool:
    """Return whether a record is newer than its index, and another one than the index says. Times
    alone do not tell: a clock may be set back."""
    written = path.stat().st_mtime_ns
    newer = [run for run in index.runs if there[run.record] > written]
    return any(_measured(study, run.record, run.key, files) != run for run in newer)


def find_block(plan: Plan, name: str, files: Results) -> Block:
    """Return the block of this name, although its file may just have been deleted.

    Raise :class:`StudyError` if neither the plan nor the records have such a block.
    """
    # Whoever ordered the block may have had each class of machine apart, or not.
    there = [*blocks_of(plan, files), *blocks_of(plan, files, apart=True)]
    for block in there:
        if block.name == name:
            return block
    own = [run for run in plan.runs if name.startswith(f"{run.block}-")]
    made = [run for run in own if os.path.lexists(files.record(plan.name, run.file))]
    candidates = {"planned": own, "made": made}
    for run in made:
        session = _measured(plan.name, run.file, run.key, files).session
        candidates.setdefault(f"session {session}", []).append(run)
    for runs in candidates.values():
        if runs and name.partition(".")[0] == name_of_block(
            runs[0].block, [run.file for run in runs]
        ):
            return Block(plan.name, runs[0].block, name, runs)
    known = ", ".join(dict.fromkeys(block.name for block in there))
    raise StudyError(f"block: {plan.name} plans no block {name!r}; allowed: {known or 'none'}")


def begun(plan: Plan, files: Results) -> bool:
    """Return whether a record of it is there."""
    folder = files.records(plan.name)
    return any(os.path.lexists(f"{folder}/{run.file}") for run in plan.runs)


def leave(block: Block, start: str, files: Results) -> None:
    """Write that a start leaves a block to another one: the report is to be made without it."""
    write_whole(
        files.block(block.study, block.name),
        BlockFile(left_by=start).model_dump_json(exclude_defaults=True),
    )


def expected_seconds(study: str, files: Results) -> dict[str, float]:
    """Return the expected seconds of a run by its key, which all runs of a setting share, from the
    blocks' files.

    They go from its start to the start of the next run: the median of its processes, and the median
    of what lay between two runs. A damaged record tells no time.
    """
    times = set()
    for _, index in block_files(study, files):
        for run in index.runs if index else ():
            with suppress(ValueError, OverflowError):
                if run.session is not None and run.started and run.seconds is not None:
                    started = datetime.fromisoformat(run.started).timestamp()
                    times.add((run.session, started, run.seconds, run.key))
    took = sorted(times)
    pauses = [
        max(0.0, later - started - seconds)
        for (session, started, seconds, _), (following, later, _, _) in pairwise(took)
        if session == following
    ]
    between = median(pauses) if pauses else 0.0
    found: dict[str, list[float]] = {}
    for _, _, seconds, key in took:
        found.setdefault(key, []).append(seconds)
    return {key: median(every) + between for key, every in found.items()}


ANALYSIS = ("analysis", "artifacts", "base", "config")
"""The parts of the package that decide what an analysis says."""


def made_of(plan: str, study: str, files: Results) -> str:
    """Return a checksum over what an analysis of ``study`` is made of: the text of its plan, its
    blocks, and the code.

    It decides whether an analysis is made again. Times of files do not: a clock may be set back.
    """
    blocks = sorted(files.blocks(study).glob("*.json"))
    made = [[path.name, file_sha256(path)] for path in blocks if path.is_file()]
    return json_sha256([plan, *made, package_sha256(*ANALYSIS)])


def page_made_of(studies: Sequence[str], files: Results) -> str:
    """Return a checksum over what the page about these studies is made of."""
    made = [
        file_sha256(path) if (path := files.made_of(study)).is_file() else None for study in studies
    ]
    return json_sha256([list(studies), made, package_sha256(*ANALYSIS)])


def is_ahead(path: Path) -> bool:
    """Return whether a file is dated in the future: a clock was set back, or another machine's is
    ahead."""
    return path.exists() and path.lstat().st_mtime > time.time()
