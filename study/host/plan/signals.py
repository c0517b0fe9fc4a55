"""Ctrl-C and SIGTERM in a start: they end the steps at once.

Snakemake alone would wait for the block that is at work.
"""

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

import psutil

from study.base.errors import INTERRUPTED

PATIENCE_SECONDS = 2.0
"""Seconds after Ctrl-C until a step is told to end: a terminal has sent Ctrl-C to the steps, too."""


def say_it_in_a_sentence() -> None:
    """Let Ctrl-C, where nothing handles it, end this process with a sentence in the place of a traceback."""
    usual = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            print(INTERRUPTED, file=sys.stderr, flush=True)
        else:
            usual(kind, error, trace)

    sys.excepthook = tell


def end_steps_at_once() -> None:
    """From now on hand SIGTERM, and after a while Ctrl-C, on to the steps. Snakemake's own handlers follow."""
    for number, seconds in ((signal.SIGTERM, 0.0), (signal.SIGINT, PATIENCE_SECONDS)):
        signal.signal(number, _handing_on(seconds, signal.getsignal(number)))


def _handing_on(
    seconds: float, usual: Callable[[int, FrameType | None], object] | int | None
) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        timer = threading.Timer(seconds, _end_steps)
        timer.daemon = True
        timer.start()
        if not callable(usual):
            return
        if number == signal.SIGTERM:
            # Snakemake's handler waits for a lock that the code which is interrupted here may hold.
            threading.Thread(target=usual, args=(number, None), daemon=True).start()
        else:
            usual(number, frame)

    return handle


def _end_steps() -> None:
    """Send SIGTERM to each step: it ends its own processes, and leaves nothing."""
    for child in psutil.Process().children():
        child.terminate()
