"""What a run asks an executor for, by Snakemake's names of resources."""

from collections.abc import Mapping

from study.config.selection import MachineClass
from study.config.settings import Settings

ALONE = "--exclusive"
"""Nothing else is to be on the node while a run is measured. What a class adds comes after it, and may revoke it."""


def asked(settings: Settings, machines: Mapping[str, MachineClass]) -> dict[str, str | int | None]:
    """Return the resources that a run with these settings asks an executor for; None for one that it does not.

    Its class of machine, one of ``machines``, counts first. A run on two nodes asks for the GPUs of each: SLURM would
    divide a total between them in any way. A number of tasks is for CPUs alone: SLURM's plugin makes it tasks per GPU.
    """
    own = machines.get(settings.machine or "")
    given = own.model_dump() if own else dict.fromkeys(MachineClass.model_fields)
    nodes, gpus = settings.training.nodes, settings.training.replicas if settings.device == "cuda" else 0
    each = f"gpu:{gpus // nodes}" if gpus and nodes > 1 else None
    return given | {
        "slurm_extra": " ".join(filter(None, [ALONE, given["slurm_extra"]])),
        "gres": given["gres"] or each,
        "gpu": gpus if gpus and not (given["gres"] or each) else None,
        "nodes": nodes if nodes > 1 else None,
        "tasks": nodes if nodes > 1 and not gpus else None,
    }
