"""What a scheduler gave this process."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from study.artifacts.record import Allocation

MARGIN_SECONDS = 60.0
"""Seconds before the end of an allocation in which no run is begun: the last record is to be written, and a report."""


def allocation(environment: Mapping[str, str] = os.environ, machine: str | None = None) -> Allocation | None:
    """Return SLURM's allocation of this process, whose run asked for the class ``machine``; None outside of one."""
    if "SLURM_JOB_ID" not in environment:
        return None
    return Allocation(
        scheduler="slurm",
        machine=machine,
        partition=environment.get("SLURM_JOB_PARTITION"),
        nodes=_number(environment, "SLURM_NNODES"),
        cpus=_number(environment, "SLURM_CPUS_ON_NODE"),
        gpus=_number(environment, "SLURM_GPUS_ON_NODE"),
        restarts=_number(environment, "SLURM_RESTART_COUNT") or 0,
    )


def end_of_allocation(environment: Mapping[str, str] = os.environ) -> float | None:
    """Return when this process's allocation ends, in epoch seconds; None without one, or if it has no end."""
    job = environment.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        return None
    with suppress(ValueError):
        return float(environment["SLURM_JOB_END_TIME"]) if "SLURM_JOB_END_TIME" in environment else _asked(job)
    return None


def _asked(job: str) -> float | None:
    """Return the end of a job by what SLURM answers."""
    asked = ["squeue", "--noheader", "--jobs", job, "--format", "%e"]
    try:
        answer = subprocess.run(
            asked,
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            env=dict(os.environ) | {"SLURM_TIME_FORMAT": "%s"},
        ).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    return float(answer[0]) if answer and answer[0].isdigit() else None


def _number(environment: Mapping[str, str], name: str) -> int | None:
    value = environment.get(name, "")
    return int(value) if value.isdigit() and len(value) < 10 else None
