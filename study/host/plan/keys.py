"""What decides a run and is known before it starts: the parts of its key, each of them found once
for a plan."""

from functools import cache
from pathlib import Path
from typing import Any

from study.artifacts.prepared import ImageRequest
from study.artifacts.run import image_name
from study.artifacts.setting import slug
from study.base.errors import StudyError
from study.base.files import (
    LARGEST_WEIGHTS,
    PACKAGE,
    code_sha256,
    content_of,
    digest,
    existing_file,
)
from study.base.imports import distributions, outside, versions
from study.config import own_model
from study.config.sections import Dataset, Model, short_name
from study.config.settings import Settings, decisive
from study.data import sources
from study.host import packages
from study.host.engine.engine_choice import EngineChoice, named
from study.host.program import identity as program_identity
from study.host.program import packages_of

COMMON = (
    "training/*.py",
    "training/instruments/*.py",
    "training/models/*.py",
    "training/loops/*.py",
    "data/decode.py",
    "base/hardware.py",
)
"""The part of the training side that every run executes, the decoder of its images, and what
tells of the machine."""

OF_A_COMMAND = ["host/steps/command.py", "host/supervise.py"]
"""The code that starts a command, and hears what it prints."""


class Parts:
    """The parts of the keys of one plan's runs. There may be thousands of settings, and few values
    of each part."""

    def __init__(self, study: str, choice: EngineChoice) -> None:
        self.study, self.choice = study, choice
        self.packages: dict[str, str] = {}
        """Versions of the packages that a run imports on the host, as far as runs were asked
        for."""
        self.environments: dict[str, str] = {}
        """The lock of each environment of packages, by the environment's name, as far as runs were
        asked for."""
        self.images: dict[str, ImageRequest] = {
            str(device): image for device, image in choice.images.items()
        }
        self.dataset = cache(_dataset)
        self._weights, self._code = cache(_weights), cache(code_sha256)
        self._environment = cache(packages.name_of)
        self._imported, self._installed = cache(_imported), cache(versions)

    def weights(self, settings: Settings) -> str:
        """Return the name of the decision about the weights, of a model that the runs will find;
        empty for a command."""
        if settings.command:
            return ""
        model, dataset = settings.model, settings.dataset
        return self._weights(model, dataset, settings.seed, self.study, self.choice.engine)

    def data(self, settings: Settings) -> tuple[str, int]:
        """Return the name of the folder of the data, and their number of images to train; neither
        for a command."""
        return ("", 0) if settings.command else self.dataset(settings.dataset)

    def key(self, settings: Settings, dataset: str, weights: str) -> str:
        """Return a digest of all that decides a run: settings, data, weights, measured code,
        packages, engine, image.

        An image stands for the packages in it.
        """
        values = decisive(settings)
        if settings.command:
            values["command"] |= self._program(settings)
        else:
            values["dataset"]["id"] = dataset
            values["model"]["weights"] = weights
        identity = {
            "settings": values,
            "code": self._code(tuple(measured_code(settings))),
            "packages": self.installed(settings),
            "engine": self.choice.engine,
            "image": self._image(settings),
        }
        if name := self.environment(settings):
            identity["environment"] = name
        return digest(identity)

    def _program(self, settings: Settings) -> dict[str, Any]:
        """Return what decides a command beside its settings, and note its packages."""
        try:
            self.packages |= packages_of(settings, Path())
            return program_identity(settings, Path(), self.choice.engine == "none")
        except StudyError as error:
            raise StudyError.of_several([error], f"study {self.study}") from None

    def environment(self, settings: Settings) -> str | None:
        """Return the name of the environment of packages of a run, and note its lock; None for the
        start's own.

        Raise :class:`StudyError` if it cannot be made.
        """
        if settings.environment is None:
            return None
        name, lock = self._environment(settings.environment, self.study, self.choice.engine)
        if (other := self.environments.setdefault(name, lock)) != lock:
            raise StudyError(
                source=f"study {self.study}",
                key="environment",
                value=settings.environment,
                why=f"it is {Path(other).name} under another name",
            )
        return name

    def _image(self, settings: Settings) -> str | None:
        """Return the identity of the image of a run, which tells it from other images. None on the
        host."""
        name = image_name(settings)
        if settings.image is not None and self.images and name not in self.images:
            base = self.images[settings.device].base_image
            self.images[name] = named(settings.image, settings.device, "image", base)
        return self.images[name].identity if name in self.images else self.choice.inside

    def installed(self, settings: Settings) -> dict[str, str]:
        """Return the versions of the packages that a run imports on the host, and note them; none
        where a lock or an image stands for them."""
        if self.choice.engine != "none" or settings.environment:
            return {}
        if settings.command:
            return packages_of(settings, Path())
        of_the_images = sources.source_of(settings.dataset).packages
        code = tuple(measured_code(settings))
        imported = self._imported(
            settings.model.name, of_the_images, settings.loader.decoder == "torchcodec", code
        )
        found = self._installed(imported)
        self.packages |= found
        return found


def measured_code(settings: Settings) -> list[str]:
    """Return the globs of the code that a run executes between its start and its last sample.

    That is the training side, ``study/training``, without the loops that the run does not enter:
    each is a folder below ``training/loops``. ``training/distributed`` counts where several
    processes train.
    """
    if settings.command:
        return OF_A_COMMAND
    together = ["training/distributed/*.py"] if settings.training.strategy != "single" else []
    return [*COMMON, f"training/loops/{settings.training.loop}/*.py", *together]


def _imported(
    model: str, of_the_images: tuple[str, ...], with_torchcodec: bool, code: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the packages from elsewhere that the measured code of a run imports, its images and
    its model."""
    files = set().union(*map(PACKAGE.glob, code))
    left_out = {"study"} if with_torchcodec else {"study", "torchcodec"}
    modules = {*outside(files), *of_the_images, *own_model.packages(model, Path())} - left_out
    return tuple(distributions(sorted(modules)))


def _dataset(dataset: Dataset) -> tuple[str, int]:
    info = sources.inspect(dataset)
    return sources.name_of(dataset, info.files), info.train_images


def _weights(model: Model, images: Dataset, seed: int, study: str, engine: str) -> str:
    name, weights = model.name, model.weights
    own_model.check(name, Path(), engine)
    identity: dict[str, Any] = {"model": name, "weights": weights}
    label = weights
    if weights == "none":
        identity["seed"] = seed
    elif weights != "imagenet":
        path = existing_file(weights, LARGEST_WEIGHTS)
        if path is None:
            raise StudyError(
                source=f"study {study}",
                key="model.weights",
                value=weights,
                why="no such file, or one of more than 128 GiB",
                allowed="imagenet, none, a path",
            )
        identity["weights"], label = [path.name, content_of(path)], "file"
    # The decision tries the model. For a user's own model, the images that it is tried on are part
    # of the identity.
    # All sizes of image share one decision for a torchvision model, or one level might start from
    # ImageNet's weights and another from random ones.
    if code := own_model.sha256(name, Path()):
        identity["code"] = code
        identity["images"] = [sources.inspect(images).classes, images.channels, images.image_size]
    return f"{slug(short_name(name))}-{label}.{digest(identity)}"
