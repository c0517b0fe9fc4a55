"""How many processes train a run on this machine, or why they cannot. Host side: no torch."""

from study.base.errors import StudyError
from study.config.settings import Settings
from study.data import preflight

CPU_PROCESSES = 2
"""The most of ``auto`` on a CPU: the fewest that have to share a batch."""


def resolve(
    settings: Settings, devices: int, study: str, train_images: int, before: int | None = None
) -> tuple[Settings, str | None]:
    """The settings with the number of processes, and why this machine cannot train them; None where it can.

    ``devices`` counts the GPUs, or the CPUs of a run on them; none where the device is absent altogether. ``before`` is
    how many ``auto`` was in an earlier plan: a run that this machine cannot make keeps them, and so its key, by which
    its record is found. Raises :class:`StudyError` where more were asked for than there are, or where they cannot share
    the batch.
    """
    training, nodes = settings.training, settings.training.nodes
    if training.strategy == "single":
        return _with_processes(settings, 1), None
    devices = min(devices, settings.limits.cpus or devices) if settings.device == "cpu" else devices
    if training.processes != "auto":
        _check(settings, training.processes, devices, study)
        count = training.processes
    elif settings.device == "cuda" and devices < nodes:
        count = before if before and _fit(settings, before, train_images) else nodes
        reason = f"training.strategy {training.strategy} needs {nodes} GPUs, and this machine has {devices}"
        return _with_processes(settings, count), reason
    else:
        count = _most(settings, devices if settings.device == "cuda" else CPU_PROCESSES, train_images)
    if not _share_evenly(settings, count):
        raise StudyError(
            f"study {study}: training.batch_size: {training.batch_size} is not allowed with training.strategy "
            f"{training.strategy}: {count} replicas cannot share it evenly; allowed: a multiple of {count}, other "
            "training.processes, or training.batch_size_is: replica"
        )
    return _with_processes(settings, count), None


def _most(settings: Settings, limit: int, train_images: int) -> int:
    """The most processes up to ``limit`` that fit; where none do one a node, of which the checks then tell."""
    nodes = settings.training.nodes
    counts = range(limit - limit % nodes, 0, -nodes)
    return next((count for count in counts if _fit(settings, count, train_images)), nodes)


def _fit(settings: Settings, count: int, train_images: int) -> bool:
    """Whether so many processes are as many on each node, share a batch evenly, and all have a part of the last one."""
    if count % settings.training.nodes or not _share_evenly(settings, count):
        return False
    return preflight.misfit_of_batches(_with_processes(settings, count), train_images) is None


def _share_evenly(settings: Settings, count: int) -> bool:
    """Whether each process has as many images of a batch, which is a micro-batch where gradients are accumulated."""
    return settings.training.batch_size_is == "replica" or settings.training.batch_size % count == 0


def _check(settings: Settings, count: int, devices: int, study: str) -> None:
    """Raise :class:`StudyError` for a number of processes that cannot be."""
    training, what = settings.training, "GPUs" if settings.device == "cuda" else "CPUs"
    start = f"study {study}: training.processes: {count} is not allowed"
    if count % training.nodes:
        raise StudyError(f"{start} with training.strategy {training.strategy}: a multiple of {training.nodes}")
    if devices and count > devices:
        raise StudyError(f"{start}: this machine offers {devices} {what} to device {settings.device}")


def _with_processes(settings: Settings, count: int) -> Settings:
    training = settings.training.model_copy(update={"processes": count})
    return settings.model_copy(update={"training": training})
