"""What continues a process that something below it has stopped: a model could stop the process that limits its time.

``python study/base/stopped.py PROCESS`` is a child of the process that it watches, and in its group: what stops a
whole group, as Ctrl-Z does, stops both.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

LOOK_SECONDS = 1.0


def continue_it(process: int) -> None:
    """Continue the process whenever it is stopped, until it is not our parent any more."""
    while os.getppid() == process:
        with suppress(OSError):
            if Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2][1] == "T":
                os.kill(process, signal.SIGCONT)
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    continue_it(int(sys.argv[1]))
