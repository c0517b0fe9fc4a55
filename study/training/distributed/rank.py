"""One process of a distributed run: it trains its share with the others, and leaves one result.

``python -m study.training.distributed.rank JOB SCRATCH PARENT``, started by
:mod:`study.training.distributed.ranks`, which passes the rank in the environment.
"""

import multiprocessing
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch

from study.artifacts.record import JobResult
from study.artifacts.run import Job
from study.artifacts.samples import Measurement
from study.base.processes import die_with
from study.training.common import failed, leave, loop_of, prepare, read_inputs, seed_everything
from study.training.distributed.ranks import result_file
from study.training.instruments.machine import set_fp32
from study.training.loops.replicas import Replicas

LONGEST_WAIT = timedelta(minutes=10)
"""Time that a process waits for the others to reach the same point before it counts them as lost.

A process that died is seen by its agent at once; this is for one that hangs.
"""


def main(job_file: str, scratch: str, parent: str) -> int:
    """Train, leave the result in ``scratch``, and return the exit code: after a failure the agent
    ends the others."""
    die_with(int(parent))
    job = Job.of_file(Path(job_file))
    settings = job.run.settings
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # nodes of one machine share its GPUs
    own = int(os.environ["LOCAL_RANK"]) if job.nodes else rank
    device = torch.device("cuda", own) if settings.device == "cuda" else torch.device("cpu")
    target = result_file(Path(scratch), rank)
    try:
        leave(
            JobResult(outcome="ok", measurement=train(job, Replicas(rank, count, True, device))),
            target,
        )
    except Exception as error:  # every outcome is a result, as in study.training.job
        leave(failed(error, settings), target)
        end_at_once()
    torch.distributed.destroy_process_group()
    return 0


def train(job: Job, replicas: Replicas) -> Measurement:
    """Train this rank's share, and return the measurement with this rank as its only replica."""
    training = job.run.settings.training
    join(replicas.device)
    threads = (
        training.threads
        if training.threads != "auto"
        else max(1, torch.get_num_threads() // replicas.count)
    )
    seed_everything(job.seed, threads)
    loop = loop_of(job.run.settings)
    set_fp32(training.precision)
    measured = loop(prepare(job, read_inputs(job), replicas.device, replicas))
    return measured.model_copy(
        update={
            "global_batch_size": training.global_batch_size,
            "replica_batch_size": training.replica_batch_size,
        }
    )


def join(device: torch.device) -> None:
    """Join the group of all ranks: over nccl on GPUs, over gloo on a CPU."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.distributed.init_process_group("nccl", timeout=LONGEST_WAIT, device_id=device)
    else:
        torch.distributed.init_process_group("gloo", timeout=LONGEST_WAIT)


def end_at_once() -> None:
    """End this process and its loader's workers without cleanup.

    Leaving the group would wait for the other ranks, which wait for this one.
    """
    for child in multiprocessing.active_children():
        child.kill()
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
