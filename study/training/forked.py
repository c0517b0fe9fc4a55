"""The process of a run of several processes that a fork server has forked: it forks the launchers of the run's ranks.

What a fork server forks calls :func:`main`. A process in which CUDA or OpenMP's threads have started cannot fork one in
which they work. So the launchers are forked first of all, and wait until the ranks shall start. They fork the ranks in
turn: none of these processes imports torch again.
"""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from study.artifacts.run import Job
from study.base.processes import die_with, name_process
from study.training import job
from study.training.distributed import agent, rank


class Launcher:
    """A launcher that was forked, and waits. It is used as :class:`subprocess.Popen` is."""

    def __init__(self) -> None:
        reading, self._orders = multiprocessing.Pipe(duplex=False)
        self._process = multiprocessing.get_context("fork").Process(target=_wait, args=(reading, os.getpid()))
        self._process.start()
        reading.close()

    def begin(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Have it start its ranks in this environment."""
        self._orders.send((list(arguments), dict(environment)))

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None before the end."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raise :class:`subprocess.TimeoutExpired` if there is none after ``timeout`` seconds."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("launcher", timeout or 0.0)
        return self._process.exitcode

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()


def _wait(orders: Connection, parent: int) -> None:
    """Wait for the order, start the ranks, and end with the launcher's exit code."""
    die_with(parent)
    name_process("study-agent")
    arguments, environment = orders.recv()
    os.environ.clear()
    os.environ.update(environment)
    job_file, scratch, node, nodes, processes, endpoint = arguments
    sys.exit(agent.main(job_file, scratch, int(node), int(nodes), int(processes), endpoint, rank.forked))


def main(job_file: str, scratch: str) -> None:
    """Fork a launcher for each node, and do what :func:`study.training.job.main` does.

    Nodes on other machines have none here: what starts their launchers is a command.
    """
    order = Job.model_validate_json(Path(job_file).read_text(encoding="utf-8"))
    launchers = [] if order.nodes else [Launcher() for _ in range(order.run.settings.training.nodes)]
    job.main(job_file, scratch, launchers)
