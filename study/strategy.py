"""How many processes train a run on this machine, or why they cannot. Host side: no torch."""

from study.config import Settings
from study.errors import StudyError

CPU_PROCESSES = 2
"""Of ``auto`` on a CPU: the fewest that have to share a batch."""


def resolve(settings: Settings, devices: int, study: str) -> tuple[Settings, str | None]:
    """The settings with the number of processes, and why this machine cannot train them; None where it can.

    ``devices`` counts the GPUs, or the CPUs of a run on them; none where the device is absent altogether. Raises
    :class:`StudyError` where more were asked for than there are, or where they cannot share the batch.
    """
    training, nodes = settings.training, settings.training.nodes
    if training.strategy == "single":
        return _with_processes(settings, 1), None
    devices = min(devices, settings.limits.cpus or devices) if settings.device == "cpu" else devices
    if training.processes == "auto":
        count = CPU_PROCESSES if settings.device == "cpu" else max(nodes, devices - devices % nodes)
        if settings.device == "cuda" and devices < count:
            reason = f"training.strategy {training.strategy} needs {count} GPUs, and this machine has {devices}"
            return _with_processes(settings, count), reason
    else:
        count = training.processes
        _check(settings, count, devices, study)
    if training.batch_size_is == "global" and training.batch_size % count:
        raise StudyError(
            f"study {study}: training.batch_size: {training.batch_size} is not allowed with training.strategy "
            f"{training.strategy}: {count} replicas cannot share it evenly; allowed: a multiple of {count}, other "
            "training.processes, or training.batch_size_is: replica"
        )
    return _with_processes(settings, count), None


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
