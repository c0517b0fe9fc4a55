"""A run of several processes: its job has torch's launcher on each node start the ranks, and
watches the launchers.

A node's launcher is ``python -m study.training.distributed.ranks JOB SCRATCH NODE NODES PROCESSES
ENDPOINT PARENT``.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

import psutil

from study.artifacts.record import JobResult
from study.artifacts.run import Node
from study.artifacts.samples import Measurement
from study.base.errors import StudyError
from study.base.processes import die_with
from study.config.settings import Settings

LAST_WORDS_SECONDS = 10.0
"""Seconds that the other agents may continue once one has failed: they report what they saw, and
end their ranks."""
END_SECONDS = 5.0
CAUSED = (-signal.SIGTERM, -signal.SIGABRT)
"""The exit codes of a rank that another one's end ended: by its agent, or by the abort of a
connection."""
LOOK_SECONDS = 0.2
LOOPBACK = "127.0.0.1"
NOBODY = "0"
"""In place of the process with which an agent ends: one on another machine ends with the command
that started it."""
MEET_SECONDS = 120
"""Seconds that the nodes may take to find each other."""
SCHEDULERS = ("SLURM_", "SRUN_", "SBATCH_")
Agent = subprocess.Popen[bytes]
"""A launcher at work."""


class RankFailed(StudyError):
    """Raised when a process of the run ended before it had trained; the message says which process
    and how it ended."""


class RankOutOfMemory(RankFailed, MemoryError):
    """Raised when a process of the run ended for lack of memory."""


def result_file(scratch: Path, rank: int) -> Path:
    """Return the path of a rank's result, good or bad."""
    return scratch / f"rank-{rank}.json"


def report_file(scratch: Path, node: int) -> Path:
    """Return the path where a node's launcher writes the exit codes of failed ranks, by rank."""
    return scratch / f"node-{node}.json"


def train_ranks(
    job_file: Path, scratch: Path, settings: Settings, on: Sequence[Node] = ()
) -> Measurement:
    """Have every rank train, and return the first rank's measurement with the replica of each.

    ``on`` are the machines of the nodes; without any all nodes are this machine. Raise
    :class:`RankFailed` if a rank does not finish; the others are then ended.
    """
    nodes, count = settings.training.nodes, settings.training.replicas
    with _started(job_file, scratch, nodes, count, on) as agents:
        codes = _ends(agents)
    results = _results(scratch, count)
    measured = [result.measurement for result in results.values() if result.measurement]
    if any(codes) or len(measured) < count:
        raise _cause(scratch, count, codes, results)
    return measured[0].model_copy(
        update={"replicas": list(chain.from_iterable(one.replicas for one in measured))}
    )


@contextmanager
def _started(
    job_file: Path, scratch: Path, nodes: int, count: int, on: Sequence[Node]
) -> Iterator[list[Agent]]:
    """Yield the running agents; at the end no agent, and so no rank, is left."""
    endpoint, agents = f"{on[0].address if on else LOOPBACK}:{_free_port()}", []
    try:
        for node in range(nodes):
            paths = [path.resolve() if on else path for path in (job_file, scratch)]
            command = [
                *(on[node].command if on else []),
                sys.executable,
                "-m",
                "study.training.distributed.ranks",
                *map(str, (*paths, node, nodes, count)),
                endpoint,
                NOBODY if on else str(os.getpid()),
            ]
            agents.append(subprocess.Popen(command, env=_environment(on)))
        yield agents
    finally:
        for agent in agents:
            agent.terminate()  # on SIGTERM an agent ends its ranks
        for agent in agents:
            with suppress(subprocess.TimeoutExpired):
                agent.wait(END_SECONDS)
            agent.kill()  # the ranks of a killed agent die with it: see study.base.processes
            agent.wait()


def _environment(on: Sequence[Node]) -> dict[str, str]:
    """Return the environment of the agents: they meet over loopback if all processes are on this
    machine.

    A container may have no other network. What starts agents on other machines asks for its own
    share of an allocation, and not for what this process's variables say of its own.
    """
    if on:
        ours = ("SLURM_CONF", "SLURM_JOB_ID")
        return {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(SCHEDULERS) or key in ours
        }
    loopback = next((name for _, name in socket.if_nameindex() if name in ("lo", "lo0")), "lo")
    return dict(os.environ) | {"GLOO_SOCKET_IFNAME": loopback, "NCCL_SOCKET_IFNAME": loopback}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ends(agents: Sequence[Agent]) -> list[int | None]:
    """Wait for all agents, or for ``LAST_WORDS_SECONDS`` once one has failed, and return the exit
    code of each.

    A code is negative for a signal, and None for an agent that still runs.
    """
    latest: float | None = None
    # Each is asked: one that ended while an earlier one still waits for it is else never seen.
    while None in (codes := [agent.poll() for agent in agents]):
        if latest is None and any(codes):
            latest = time.monotonic() + LAST_WORDS_SECONDS
        if latest is not None and time.monotonic() > latest:
            break
        time.sleep(LOOK_SECONDS)
    return codes


def _results(scratch: Path, count: int) -> dict[int, JobResult]:
    files = {rank: result_file(scratch, rank) for rank in range(count)}
    return {rank: JobResult.of_file(path) for rank, path in files.items() if path.is_file()}


def _lost(scratch: Path, nodes: int) -> dict[int, int]:
    """Return the exit codes of the ranks that the launchers saw fail, by rank."""
    codes = {}
    for node in range(nodes):
        path = report_file(scratch, node)
        if path.is_file():
            for rank, code in json.loads(path.read_text(encoding="ascii")).items():
                codes[int(rank)] = code
    return codes


def _cause(
    scratch: Path, count: int, codes: Sequence[int | None], results: dict[int, JobResult]
) -> RankFailed:
    """Return an error that names the first cause of the failure.

    A rank that was killed leaves no result, and makes the others fail at their next exchange. Among
    the ranks that left a result the earliest is the cause.
    """
    for node, code in enumerate(codes):
        if code is not None and code < 0:
            return RankFailed(f"the launcher of node {node} of {len(codes)} {_ended(code)}")
    reported = sorted(
        (rank for rank, result in results.items() if result.outcome != "ok"),
        key=lambda rank: result_file(scratch, rank).stat().st_mtime_ns,
    )
    lost = [
        (rank, code) for rank, code in _lost(scratch, len(codes)).items() if rank not in results
    ]
    for rank, code in sorted(lost, key=lambda loss: loss[1] in CAUSED):
        if code not in CAUSED or not reported:
            return RankFailed(f"rank {rank} of {count} {_ended(code)}")
    for rank in reported:
        kind = RankOutOfMemory if results[rank].outcome == "out_of_memory" else RankFailed
        return kind(f"rank {rank} of {count}: {results[rank].message}")
    return RankFailed(
        f"the ranks could not be started: {', '.join(map(_ended, filter(None, codes)))}"
    )


def _ended(code: int) -> str:
    """Return ``was ended by SIGKILL``, or words with the exit code."""
    with suppress(ValueError):
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def _own_address(endpoint: str) -> str:
    """Return the address of this node as the one at ``endpoint`` sees it, and have the ranks use
    its interface."""
    host, _, port = endpoint.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))  # sends nothing
        own = str(probe.getsockname()[0])
    for name, addresses in psutil.net_if_addrs().items():
        if own in [one.address for one in addresses]:
            # The first such interface stays, and so does one that the caller named.
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
            os.environ.setdefault("NCCL_SOCKET_IFNAME", name)
    return own


def launch(job: str, scratch: Path, node: int, nodes: int, processes: int, endpoint: str) -> int:
    """Start this node's share of ``processes`` ranks, wait for them, and return the exit code.

    It uses the launcher's interface and not its command line, ``torchrun``, because that reports
    only in a log which rank died and how. Here the report is a file.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=nodes,
        max_nodes=nodes,
        nproc_per_node=processes // nodes,
        # Another run on this machine may have had the same port; its scratch folder had another
        # name.
        run_id=f"study-{scratch.resolve().parent.name}",
        rdzv_backend="c10d",
        rdzv_endpoint=endpoint,
        rdzv_configs={"is_host": node == 0, "join_timeout": MEET_SECONDS, "timeout": MEET_SECONDS},
        # else left in /tmp; ranks write to ours
        logs_specs=DefaultLogsSpecs(log_dir=str(scratch / "agents")),
        # a run that lost a rank has failed: its samples are no longer those of one run
        max_restarts=0,
        # the host's name may resolve to nothing where there is no network
        local_addr=_own_address(endpoint),
    )
    # on a machine with a GPU ranks would be bound to other CPUs than the run was given
    config.numa_options = None
    try:
        command = ("-m", "study.training.distributed.rank", job, str(scratch), str(os.getpid()))
        elastic_launch(config, sys.executable)(*command)
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        report_file(scratch, node).write_text(json.dumps(codes), encoding="ascii")
        return 1
    return 0


if __name__ == "__main__":
    job, scratch, node, nodes, processes, endpoint, parent = sys.argv[1:]
    die_with(os.getppid() if parent == NOBODY else int(parent))
    sys.exit(launch(job, Path(scratch), int(node), int(nodes), int(processes), endpoint))
