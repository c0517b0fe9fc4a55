"""The CPU threads of a training: what a study declares, whatever a loader does in a thread of its own."""

import os
import subprocess
import sys

import pytest

PINNED = """
import threading, torch
from study.training.common import seed_everything

seed_everything(1, {threads!r})
pinning = threading.Thread(target=torch.set_num_threads, args=(1,))  # as torch's loader does to pin memory for a GPU
if {pins}:
    pinning.start()
    pinning.join()
print(torch.get_num_threads())
"""


def threads_of(threads: int | str, pins: bool) -> int:
    """The number of threads in a process that has computed nothing yet, as a run's is."""
    command = [sys.executable, "-c", PINNED.format(threads=threads, pins=pins)]
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("threads", ["auto", 2])
def test_a_thread_that_pins_memory_leaves_the_training_its_threads(threads: int | str) -> None:
    """The plain loop once trained with one thread beside fastai's sixteen."""
    assert threads_of(threads, pins=True) == threads_of(threads, pins=False)
