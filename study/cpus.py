"""How many CPUs this process may use."""

import os


def usable_cpus() -> int:
    """CPUs that the scheduler lets this process use; where the system does not tell, all of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
