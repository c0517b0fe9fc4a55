"""The pace of settings: what a few of their steps take, from which a whole run is foretold."""

from statistics import fmean, median
from typing import Self

from study.artifacts.prepared import Manifest
from study.artifacts.samples import Images, Measurement, Samples, Seconds
from study.config.settings import Settings


class Pace(Samples):
    """Seconds of the parts of a run in small, each of which a whole run has many times."""

    setup_seconds: Seconds
    """Everything of the run that is neither a step nor validation: loaders, model, imports."""
    step_images: Images
    """Images of a step."""
    step_seconds: dict[str, Seconds]
    """One step, by the stage of the schedule."""
    epoch_seconds: Seconds
    """What an epoch takes beside its steps, such as the start of the loader's workers."""
    valid_image_seconds: Seconds

    @classmethod
    def of(cls, measured: Measurement, seconds: float, valid_images: int) -> Self:
        """Return the pace of a run in small that took so many ``seconds`` in all.

        A step counts without its wait for data; to that each step adds an equal part of all that
        was waited, for a loader that is slower than the model is ahead of the first steps alone.
        """
        steps, beside = dict[str, float](), list[float]()
        for number, epoch in enumerate(measured.epochs, start=1):
            own = [step for step in measured.steps if step.epoch == number]
            waits = sum(step.data_wait_seconds for step in own) - epoch.loader_start_seconds
            # The first step of a stage is slow: libraries choose their kernels in it.
            later = own[1:] or own
            step = median(one.seconds - one.data_wait_seconds for one in later)
            steps[epoch.stage] = step + max(0.0, waits) / len(own)
            beside.append(epoch.loader_start_seconds + epoch.loader_end_seconds)
        judged = measured.epochs[-1]
        images = max(step.images for step in measured.steps)
        return cls(
            setup_seconds=max(0.0, seconds - measured.fit_seconds),
            step_images=images,
            step_seconds=steps,
            epoch_seconds=fmean(beside),
            # Workers start for a validation, too: an image takes at most as long as in training.
            valid_image_seconds=min(judged.valid_seconds / valid_images, step / images),
        )

    def run_seconds(self, settings: Settings, data: Manifest) -> float:
        """Return the seconds of a whole run with these settings and data, without its process.

        A step of more images than the pace's takes longer by as much, one of fewer no less. A
        training with a target is foretold to need its whole schedule.
        """
        training = settings.training
        steps, rest = divmod(data.train_images, training.step_images)
        steps += bool(rest) and not training.drop_last
        stages = {"frozen": training.freeze_epochs, "unfrozen": training.epochs}
        epochs = sum(stages.values())
        judged = epochs if training.validation == "epoch" else 1
        seconds = self.setup_seconds + epochs * self.epoch_seconds
        seconds += judged * (data.valid_images * self.valid_image_seconds + self.epoch_seconds)
        larger = max(1.0, training.step_images / self.step_images)
        for stage, count in stages.items():
            seconds += count * steps * larger * self.step_seconds.get(stage, 0.0)
        return seconds
