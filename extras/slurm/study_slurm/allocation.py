"""What a run asks SLURM for, by Snakemake's names of resources, and what SLURM gave this
process."""

import math
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from study.artifacts.record import Allocation
from study.artifacts.run import Node
from study.config.selection import MachineClass
from study.config.settings import Settings


def allocation(
    machine: str | None, environment: Mapping[str, str] = os.environ
) -> Allocation | None:
    """Return SLURM's allocation of this process, whose run asked for the class ``machine``; None
    outside of one."""
    if "SLURM_JOB_ID" not in environment:
        return None
    job = _job(environment)
    return Allocation(
        scheduler="slurm",
        machine=machine,
        partition=environment.get("SLURM_JOB_PARTITION"),
        nodes=_number(job, "NumNodes"),
        cpus=_number(environment, "SLURM_CPUS_ON_NODE"),
        gpus=_number(environment, "SLURM_GPUS_ON_NODE"),
        restarts=_number(job, "Restarts") or 0,
    )


def nodes_of(count: int, environment: Mapping[str, str] = os.environ) -> list[Node]:
    """Return the first ``count`` machines of this process's allocation, or none if it has fewer.

    The ranks meet on the first one.
    """
    job = environment.get("SLURM_JOB_ID", "")
    if count < 2 or not job:
        return []
    names = _told("scontrol", "show", "hostnames", _job(environment).get("NodeList", ""))[:count]
    if len(names) < count:
        return []
    found = []
    for name in names:
        address = re.search(r"NodeAddr=(\S+)", " ".join(_told("scontrol", "show", "node", name)))
        step = f"srun --jobid={job} --overlap --nodes=1 --ntasks=1 --nodelist={name}"
        found.append(Node(address=address.group(1) if address else name, command=step.split()))
    return found


def end_of_allocation(environment: Mapping[str, str] = os.environ) -> float | None:
    """Return when this process's allocation ends, in epoch seconds; None without one, or if it has
    no end."""
    job = environment.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        return None
    told = environment.get("SLURM_JOB_END_TIME")
    with suppress(ValueError, IndexError):
        return float(told or _told("squeue", "--noheader", "--jobs", job, "--format", "%e")[0])
    return None


def _job(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what SLURM says of this process's job, by its own words; nothing if it does not
    answer.

    Snakemake's plugin makes a run a step on one node, and takes the job's variables from it: SLURM
    then sets those of the step alone.
    """
    words = _told("scontrol", "show", "job", environment["SLURM_JOB_ID"])
    return dict(word.split("=", 1) for word in words if "=" in word)


def _told(*command: str) -> list[str]:
    """Return the words that a command of SLURM's prints; none if it fails. Times are in epoch
    seconds."""
    seconds = dict(os.environ) | {"SLURM_TIME_FORMAT": "%s"}
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.check_output(
            command, text=True, timeout=20, stderr=subprocess.DEVNULL, env=seconds
        ).split()
    return []


def _number(environment: Mapping[str, str], name: str) -> int | None:
    value = environment.get(name, "")
    return int(value) if value.isdigit() and len(value) < 10 else None


ALONE = "--exclusive"
"""Nothing else is to be on the node while a run is measured. What a class adds comes after it, and
may revoke it."""


def requested_resources(
    runs: Sequence[Settings], machines: Mapping[str, MachineClass]
) -> dict[str, str | int | None]:
    """Return the resources that a block of runs with these settings asks an executor for; None for
    one that it does not.

    Its class of machine, one of ``machines``, counts first; then the run that needs most. A run on
    two nodes asks for the GPUs of each: SLURM would divide a total between them in any way. A
    number of tasks is for CPUs alone: SLURM's plugin makes it tasks per GPU.
    """
    own = machines.get(runs[0].machine or "")
    given = own.model_dump() if own else dict.fromkeys(MachineClass.model_fields)
    nodes = max(run.training.nodes for run in runs)
    on_gpus = [run.training for run in runs if run.device == "cuda"]
    gpus = max((training.replicas for training in on_gpus), default=0)
    on_each = max((training.replicas // training.nodes for training in on_gpus), default=0)
    each = f"gpu:{on_each}" if gpus and nodes > 1 else None
    memory_gib = max(run.limits.memory_gib or 0 for run in runs)
    seconds = sum(run.limits.timeout_seconds or math.inf for run in runs)
    return given | {
        "mem_mb": int(1024 * memory_gib) or None,
        "runtime": None if math.isinf(seconds) else math.ceil(seconds / 60),
        "slurm_extra": " ".join(filter(None, [ALONE, given["slurm_extra"]])),
        "gres": given["gres"] or each,
        "gpu": gpus if gpus and not (given["gres"] or each) else None,
        "nodes": nodes if nodes > 1 else None,
        "tasks": nodes if nodes > 1 and not gpus else None,
    }
