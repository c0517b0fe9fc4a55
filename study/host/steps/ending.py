"""How a training process ended, as a result."""

import signal
from pathlib import Path

from study.artifacts.record import JobResult
from study.base.errors import StudyError
from study.base.privacy import anonymous
from study.host.engine.lifetime import End

KILLED = ("is killed by signal", "ended by SIGKILL")
"""Words in the message of a process that lost another one: torch's of a loader's worker, ours of a rank."""


def result_of(path: Path, end: End, memory_gib: float | None = None) -> JobResult:
    """Return the result that the process wrote to ``path``, or else an outcome derived from ``end``.

    ``memory_gib`` is the run's limit, which the message names. An exit code of a container above 128 is a signal.
    """
    if path.is_file():
        try:
            result = JobResult.of_file(path)
            # On the host the kernel counts for others too: a failure of its own is not another's lack of memory.
            if result.outcome == "failed" and end.oom_killed and any(word in str(result.message) for word in KILLED):
                return result.model_copy(update={"outcome": "out_of_memory"})
            return result
        except (OSError, StudyError) as error:
            return JobResult(outcome="failed", message=anonymous(f"the process left no valid result: {error}"))
    return without_result(end, memory_gib)


def without_result(end: End, memory_gib: float | None = None) -> JobResult:
    """Return the outcome of a process that left no result, derived from its end."""
    if end.trouble:
        return JobResult(outcome="failed", message=anonymous(end.trouble))
    if end.oom_killed:
        limit = f", at its limit of {memory_gib:g} GiB (limits.memory_gib)" if memory_gib else ""
        return JobResult(outcome="out_of_memory", message=f"the kernel killed the process for lack of memory{limit}")
    name = signal_name(end.code)
    if name:
        return JobResult(outcome="failed", message=f"the process was ended by {name}")
    return JobResult(outcome="failed", message=f"the process ended with exit code {end.code} and left no result")


def signal_name(code: int) -> str | None:
    """Return the name of the signal behind an exit code, or None.

    The code of a child process is negative for a signal; that of a container or a shell is above 128.
    """
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
