"""One node of a distributed run: torch's elastic launcher, as in ``torchrun``, which starts this project's ranks.

``python -m study.training.distributed.agent JOB SCRATCH NODE NODES PROCESSES ENDPOINT PARENT``. The module
uses the launcher's interface and not its command line, because that reports only in a log which rank died and how.
Here the report is a file.
"""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from torch.numa.binding import AffinityMode, NumaOptions

from study.base.processes import die_with, name_process
from study.training.distributed.ranks import NOBODY, report_file

MEET_SECONDS = 120
"""Seconds that the nodes may take to find each other."""


def _own_address(endpoint: str) -> str:
    """Return the address of this node as the one at ``endpoint`` sees it, and have the ranks use its interface."""
    host, _, port = endpoint.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))  # sends nothing
        own = str(probe.getsockname()[0])
    names = [name for name, addresses in psutil.net_if_addrs().items() for one in addresses if one.address == own]
    for name in names[:1]:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
        os.environ.setdefault("NCCL_SOCKET_IFNAME", name)
    return own


def configured(scratch: str, node: int, nodes: int, processes: int, endpoint: str) -> LaunchConfig:
    """Return the configuration of one node's launcher; making it leaves CUDA alone.

    Left to itself, the configuration asks whether there is a GPU, after which CUDA works in no process forked from this
    one, and then has ranks bound to other CPUs than the run was given. So it is made with a binding, which asks
    nothing, and the binding is taken away.
    """
    config = LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=processes // nodes,
        # Another run on this machine may have had the same port; its scratch folder had another name.
        run_id=f"study-{Path(scratch).resolve().parent.name}",
        rdzv_backend="c10d",
        rdzv_endpoint=endpoint,
        rdzv_configs={"is_host": node == 0, "join_timeout": MEET_SECONDS, "timeout": MEET_SECONDS},
        logs_specs=DefaultLogsSpecs(log_dir=str(Path(scratch) / "agents")),  # else left in /tmp; ranks write to ours
        start_method="fork",
        max_restarts=0,  # a run that lost a rank has failed: its samples are no longer those of one run
        local_addr=_own_address(endpoint),  # the host's name may resolve to nothing where there is no network
        numa_options=NumaOptions(AffinityMode.NODE),
    )
    config.numa_options = None
    return config


def main(
    job: str,
    scratch: str,
    node: int,
    nodes: int,
    processes: int,
    endpoint: str,
    rank: Callable[[str, str, str], int] | None = None,
) -> int:
    """Start this node's share of ``processes`` ranks, wait for them, and return the exit code.

    A rank is a process forked from this one that calls ``rank``; without it, one that starts from nothing.
    """
    config = configured(scratch, node, nodes, processes, endpoint)
    arguments = (job, scratch, str(os.getpid()))
    try:
        if rank:
            elastic_launch(config, rank)(*arguments)
        else:
            elastic_launch(config, sys.executable)("-m", "study.training.distributed.rank", *arguments)
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        report_file(Path(scratch), node).write_text(json.dumps(codes), encoding="ascii")
        return 1
    return 0


class Launcher:
    """A node's launcher that a run's process has forked, and that waits. It is used as :class:`subprocess.Popen` is.

    It forks its ranks in turn: none of these processes imports torch again.
    """

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
    from study.training.distributed import rank  # what starts from nothing has no use for it

    name_process("study-agent")
    arguments, environment = orders.recv()
    os.environ.clear()
    os.environ.update(environment)
    job_file, scratch, node, nodes, processes, endpoint = arguments
    sys.exit(main(job_file, scratch, int(node), int(nodes), int(processes), endpoint, rank.forked))


if __name__ == "__main__":
    job, scratch, node, nodes, processes, endpoint, parent = sys.argv[1:]
    die_with(os.getppid() if parent == NOBODY else int(parent))
    sys.exit(main(job, scratch, int(node), int(nodes), int(processes), endpoint))
