"""What a signal to a start does."""

import subprocess
import sys

HELD = """
import os, signal, threading, time
from study.host.plan.signals import end_steps_at_once

lock, handled = threading.Lock(), threading.Event()

def usual(number, frame):
    with lock:
        handled.set()

signal.signal(signal.SIGTERM, usual)
end_steps_at_once()
with lock:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)
assert handled.wait(20)
"""


def test_a_signal_that_comes_while_snakemake_holds_its_lock_is_handled_once_the_lock_is_free() -> None:
    """Snakemake's handler takes the lock under which its main thread ends a job: such a start never ended."""
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
