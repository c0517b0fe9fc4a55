"""Parts of a command line that several engines read alike."""

import csv
import io
from collections.abc import Iterable, Sequence

from study.base.errors import StudyError
from study.host.engine.container import Box, Mount


def each(option: str, values: Iterable[str]) -> list[str]:
    """Return ``option`` before each of the values."""
    return [item for value in values for item in (option, value)]


def pairs(values: Iterable[tuple[str, str]]) -> list[str]:
    """Return each (key, value) as ``key=value``."""
    return [f"{key}={value}" for key, value in values]


def limits(box: Box) -> list[str]:
    """Return the options for memory and CPUs. Swap adds nothing to the memory."""
    memory = [str(box.memory_bytes)] if box.memory_bytes else []
    cpus = [",".join(map(str, box.cpus))] if box.cpus else []
    return [*each("--memory", memory), *each("--memory-swap", memory), *each("--cpuset-cpus", cpus)]


def mounts(shown: Iterable[Mount], read_only: str) -> list[str]:
    """Return the options for mounts. ``read_only`` is the engine's word for a mount that nobody may write.

    Raise :class:`StudyError` if a path has a line break, which no engine reads.
    """
    return each("--mount", [_mount(mount, read_only) for mount in shown])


def _mount(mount: Mount, read_only: str) -> str:
    for path in (str(mount.source), mount.target):
        if "\n" in path:
            raise StudyError(f"{path!r}: a path with a line break cannot be mounted into a container")
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    return csv_line(fields if mount.writable else [*fields, read_only])


def csv_line(fields: Sequence[str]) -> str:
    """Return the fields as one line of CSV, as engines read them: fields with a comma or a quote are quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()
