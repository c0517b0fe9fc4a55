"""Resolve the number of training processes of a run on this machine. Host side: does not import
torch."""

from functools import partial

from study.base.errors import StudyError
from study.config.settings import KEYS, Settings
from study.config.study import Study
from study.data import splits

CPU_PROCESSES = 2
"""Largest number of processes that ``auto`` gives on a CPU: the smallest number that has to share a
batch."""


def may_differ(study: Study) -> bool:
    """Return whether the number of processes of a run may differ between machines: not where there
    is always one."""
    return {study.training.strategy, *study.factors.get("training.strategy", [])} != {"single"}


def resolve(
    settings: Settings,
    devices: int | None,
    study: str,
    train_images: int,
    before: int | None = None,
) -> tuple[Settings, str | None]:
    """Return the settings with the number of processes, and the reason why this machine cannot
    train them, or None.

    ``devices`` is the number of GPUs (or CPUs, for a run on a CPU), 0 if the device is absent. It
    is None on the machines of an executor, where nobody knows it: there ``auto`` gives a node one
    process on a GPU. ``before`` is the number that ``auto`` had in an earlier plan: a run that this
    machine cannot make keeps it, and with it the key by which its record is found. Raise
    :class:`StudyError` if more processes are asked for than there are devices, or if they cannot
    share the batch.
    """
    training, nodes = settings.training, settings.training.nodes
    units = f"{KEYS['device'].words[settings.device]}s"
    if training.strategy == "single":
        return _with_processes(settings, 1), None
    if settings.device == "cpu" and settings.limits.cpus:
        devices = min(devices or settings.limits.cpus, settings.limits.cpus)
    if training.processes != "auto":
        count = training.processes
        refused = partial(
            StudyError, source=f"study {study}", key="training.processes", value=count
        )
        if count % nodes:
            context = f"with training.strategy {training.strategy}"
            raise refused(context=context, allowed=f"a multiple of {nodes}")
        if devices and count > devices:
            raise refused(why=f"this machine offers {devices} {units} to device {settings.device}")
    elif settings.device != "cpu" and devices is not None and devices < nodes:
        count = before if before and _fit(settings, before, train_images) else nodes
        reason = (
            f"training.strategy {training.strategy} needs {nodes} {units}, and this "
            f"machine has {devices}"
        )
        return _with_processes(settings, count), reason
    else:
        most = (devices or nodes) if settings.device != "cpu" else CPU_PROCESSES
        counts = range(most - most % nodes, 0, -nodes)
        # If none fits: one per node, which the checks that follow report.
        count = next((one for one in counts if _fit(settings, one, train_images)), nodes)
    if not _share_evenly(settings, count):
        raise StudyError(
            source=f"study {study}",
            key="training.batch_size",
            value=training.batch_size,
            context=f"with training.strategy {training.strategy}",
            why=f"{count} replicas cannot share it evenly",
            allowed=f"a multiple of {count}, other training.processes, or "
            "training.batch_size_is: replica",
        )
    return _with_processes(settings, count), None


def _fit(settings: Settings, count: int, train_images: int) -> bool:
    """Return whether ``count`` divides evenly over the nodes and the batch, and leaves no process
    without images in the last batch."""
    if count % settings.training.nodes or not _share_evenly(settings, count):
        return False
    return splits.misfit_of_batches(_with_processes(settings, count), train_images) is None


def _share_evenly(settings: Settings, count: int) -> bool:
    """Return whether ``count`` processes get equal parts of a batch (a micro-batch with gradient
    accumulation)."""
    return settings.training.batch_size_is == "replica" or settings.training.batch_size % count == 0


def _with_processes(settings: Settings, count: int) -> Settings:
    training = settings.training.model_copy(update={"processes": count})
    return settings.model_copy(update={"training": training})
