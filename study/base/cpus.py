"""The number of CPUs that this process may use."""

import os


def usable_cpus() -> int:
    """Return the number of CPUs on which the scheduler may run this process; all CPUs if the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
