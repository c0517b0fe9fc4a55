"""The number of images really trained on: each process counts them, and the sum has to equal the plan's."""

from collections.abc import Sequence

from study.artifacts.samples import Memory, Replica, Step
from study.base.errors import StudyError
from study.training.loops.contract import TrainingJob
from study.training.loops.replicas import Replicas, steps_of_epoch


def count_for(job: TrainingJob) -> "ImageCount":
    """Return a count against the steps that follow from the settings and the data, whatever the loader yields."""
    training = job.settings.training
    size = training.global_batch_size * training.gradient_accumulation
    return ImageCount(steps_of_epoch(len(job.images.train), size, training.drop_last), job.replicas)


def own_account(
    replicas: Replicas, images: int, fit_seconds: float, steps: Sequence[Step], memory: Memory
) -> list[Replica]:
    """Return this process's :class:`Replica` if several processes train.

    The list is empty for a single process, whose measurement has the same values.
    """
    waited = sum(step.data_wait_seconds for step in steps)
    account = Replica(images=images, fit_seconds=fit_seconds, data_wait_seconds=waited, memory=memory)
    return [account] if replicas.together else []


class ImageCount:
    """Adds up the images that this process trains on, as integers on the host, without waiting for a device.

    ``planned`` holds the number of images of each step of an epoch, summed over processes.
    """

    def __init__(self, planned: Sequence[int], replicas: Replicas) -> None:
        self.planned, self.replicas = planned, replicas
        self.epochs: list[int] = []
        """Number of images that this process trained on in each epoch so far."""
        self.steps = self.own = 0

    def expect(self) -> int:
        """Return the planned number of images, summed over processes, of the step that begins now.

        Raise :class:`StudyError` if the plan has no such step: a loader that repeats must not go on.
        """
        if self.steps < len(self.planned):
            return self.planned[self.steps]
        raise StudyError(f"{self._where()}: the loader gave more than the {len(self.planned)} steps of the plan")

    def begin(self) -> None:
        """Start the count of an epoch."""
        self.epochs.append(0)
        self.steps = self.own = 0

    def add(self, images: int) -> None:
        """Add ``images`` to this process's count for the current step."""
        self.own += images

    def end_step(self) -> int:
        """Return the number of images of the step, summed over processes.

        A single process returns its count. With several, no process knows the others' counts, and asking in each step
        would cost time: they return the planned number, and :meth:`check` compares at the end.
        """
        images = self.planned[self.steps] if self.replicas.together else self.own
        self.epochs[-1] += self.own
        self.steps, self.own = self.steps + 1, 0
        return images

    def end_epoch(self) -> None:
        """Raise :class:`StudyError` if steps are missing.

        Call it before the processes next wait for each other: otherwise a process with fewer steps would wait forever.
        """
        if self.steps != len(self.planned) or self.own:
            raise StudyError(
                f"{self._where()}: the loader gave {self.steps} of the {len(self.planned)} steps of the plan"
            )

    def check(self) -> int:
        """Return the number of images that this process trained on.

        Raise :class:`StudyError` in every process if the sum over processes is not the plan's. Every process has to
        call this.
        """
        planned = sum(self.planned)
        for epoch, images in enumerate(self.replicas.added(self.epochs), start=1):
            if images != planned:
                raise StudyError(
                    f"epoch {epoch} trained on {images:.0f} images in place of the {planned} of the plan: "
                    "the loader repeats images or leaves some out"
                )
        return sum(self.epochs)

    def _where(self) -> str:
        return f"epoch {len(self.epochs)}"
