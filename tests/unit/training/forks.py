"""Programs that each need a process of its own with torch in it: they are forked from one that has imported it."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tests.conftest import ROOT

FORKS = """
import os, sys
import psutil, torch, torchvision
assert psutil.Process().num_threads() == 1
for code in sys.argv[1:]:
    sys.stdout.flush()
    if not os.fork():
        exec(code)
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0, code
"""


def said_by_forks(programs: Sequence[str], variables: Mapping[str, str] | None = None) -> list[str]:
    """Return the line that each program says. torch and torchvision are imported once, which takes 4 s of a core."""
    command = [sys.executable, "-c", FORKS, *programs]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **(variables or {})}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(programs), lines
    return lines
