"""One node of a distributed run: torch's elastic launcher, as in ``torchrun``, which starts this project's ranks.

``python -m study.training.distributed.agent JOB SCRATCH NODE NODES PROCESSES ENDPOINT PARENT``. The module
uses the launcher's interface and not its command line, because that reports only in a log which rank died and how.
Here the report is a file.
"""

import json
import os
import socket
import sys
from pathlib import Path

import psutil
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from study.base.processes import die_with
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
    """Return the configuration of one node's launcher.

    On a machine with a GPU it would have ranks bound to other CPUs than the run was given: the binding is taken away.
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
        max_restarts=0,  # a run that lost a rank has failed: its samples are no longer those of one run
        local_addr=_own_address(endpoint),  # the host's name may resolve to nothing where there is no network
    )
    config.numa_options = None
    return config


def main(job: str, scratch: str, node: int, nodes: int, processes: int, endpoint: str) -> int:
    """Start this node's share of ``processes`` ranks, wait for them, and return the exit code."""
    config = configured(scratch, node, nodes, processes, endpoint)
    module = "study.training.distributed.rank"
    try:
        elastic_launch(config, sys.executable)("-m", module, job, scratch, str(os.getpid()))
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in error.failures.items()}
        report_file(Path(scratch), node).write_text(json.dumps(codes), encoding="ascii")
        return 1
    return 0


if __name__ == "__main__":
    job, scratch, node, nodes, processes, endpoint, parent = sys.argv[1:]
    die_with(os.getppid() if parent == NOBODY else int(parent))
    sys.exit(main(job, scratch, int(node), int(nodes), int(processes), endpoint))
