"""Images that were really trained on, counted by each process, against those that the plan has."""

from collections.abc import Sequence

from study.data.sharding import steps_of_epoch
from study.errors import StudyError
from study.measure.samples import Memory, Replica, Step
from study.train.replicas import Replicas
from study.train.schedule import TrainingJob


def count_for(job: TrainingJob) -> "ImageCount":
    """A count against the steps that the settings and the data make, whatever the loader says."""
    training = job.settings.training
    size = training.global_batch_size * training.gradient_accumulation
    return ImageCount(steps_of_epoch(len(job.images.train), size, training.drop_last), job.replicas)


def own_account(
    replicas: Replicas, images: int, fit_seconds: float, steps: Sequence[Step], memory: Memory
) -> list[Replica]:
    """What this process itself did, where many train; nothing where it is alone, for the measurement says so."""
    waited = sum(step.data_wait_seconds for step in steps)
    account = Replica(images=images, fit_seconds=fit_seconds, data_wait_seconds=waited, memory=memory)
    return [account] if replicas.together else []


class ImageCount:
    """Adds up this process's images as they are trained on: integers on the host, which wait for no device.

    ``planned`` are the images of each step of an epoch, of all processes together.
    """

    def __init__(self, planned: Sequence[int], replicas: Replicas) -> None:
        self.planned, self.replicas = planned, replicas
        self.epochs: list[int] = []
        """This process's images of each epoch so far."""
        self.steps = self.own = 0

    def expect(self) -> int:
        """Images that the step that begins now should have, of all processes together. Raises :class:`StudyError` where
        the plan has no such step: a loader that repeats must not go on."""
        if self.steps < len(self.planned):
            return self.planned[self.steps]
        raise StudyError(f"{self._where()}: the loader gave more than the {len(self.planned)} steps of the plan")

    def begin(self) -> None:
        """An epoch begins."""
        self.epochs.append(0)
        self.steps = self.own = 0

    def add(self, images: int) -> None:
        """This process trained on so many more images of the step."""
        self.own += images

    def end_step(self) -> int:
        """The images of the step, of all processes together. One process alone has counted them; of many no one knows
        the others', and asking in each step would cost time: :meth:`check` asks at the end."""
        images = self.planned[self.steps] if self.replicas.together else self.own
        self.epochs[-1] += self.own
        self.steps, self.own = self.steps + 1, 0
        return images

    def end_epoch(self) -> None:
        """Raise :class:`StudyError` where steps are missing. Asked before the processes next wait for each other: one
        with fewer steps than the others would wait for what never comes."""
        if self.steps != len(self.planned) or self.own:
            raise StudyError(
                f"{self._where()}: the loader gave {self.steps} of the {len(self.planned)} steps of the plan"
            )

    def check(self) -> int:
        """The images that this process trained on. Raises :class:`StudyError` in every process where those of all
        together are not the plan's; every process has to call this."""
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
