"""How a training process ended, as a result."""

import signal
from pathlib import Path

from pydantic import ValidationError

from study.artifacts.record import JobResult
from study.base.privacy import anonymous
from study.host.engine.lifetime import End


def result_of(path: Path, end: End, memory_gib: float | None = None) -> JobResult:
    """What the process left, or what its end tells. A container's exit code above 128 is a signal."""
    if path.is_file():
        try:
            result = JobResult.model_validate_json(path.read_text(encoding="utf-8"))
            if result.outcome == "failed" and end.oom_killed:  # a worker of the loader was killed, not the process
                return result.model_copy(update={"outcome": "out_of_memory"})
            return result
        except (OSError, ValidationError) as error:
            reason = str(error).splitlines()[0]
            return JobResult(outcome="failed", message=anonymous(f"the process left no valid result: {reason}"))
    if end.trouble:
        return JobResult(outcome="failed", message=anonymous(end.trouble))
    if end.oom_killed:
        limit = f", at its limit of {memory_gib:g} GiB (limits.memory_gib)" if memory_gib else ""
        return JobResult(outcome="out_of_memory", message=f"the kernel killed the process for want of memory{limit}")
    name = signal_name(end.code)
    if name:
        return JobResult(outcome="failed", message=f"the process was ended by {name}")
    return JobResult(outcome="failed", message=f"the process ended with exit code {end.code} and left no result")


def signal_name(code: int) -> str | None:
    """The signal that an exit code stands for: negative as of a child, above 128 as of a container or a shell."""
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return None
