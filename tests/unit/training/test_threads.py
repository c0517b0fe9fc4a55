"""The CPU threads of a training: what a study declares, whatever a loader does in a thread of its own."""

from tests.unit.training.forks import said_by_forks

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


def test_a_thread_that_pins_memory_leaves_the_training_its_threads() -> None:
    """The plain loop once trained with one thread beside fastai's sixteen."""
    cases = [(threads, pins) for threads in ("auto", 2, 3) for pins in (True, False)]
    programs = [PINNED.format(threads=threads, pins=pins) for threads, pins in cases]
    assert said_by_forks(programs, {"OMP_NUM_THREADS": "2"}) == ["2", "2", "2", "2", "3", "3"]
