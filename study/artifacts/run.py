"""One planned run, and the files that its launcher and its process hand to each other."""

from pydantic import Field

from study.artifacts.setting import Setting
from study.base.files import digest
from study.base.strict import Strict
from study.config.settings import Settings

RESULT, TELEMETRY = "result.json", "telemetry.csv"


def image_name(settings: Settings) -> str:
    """Return the name of the image for these settings: the device, with a hash if the settings name
    another image."""
    return (
        settings.device if settings.image is None else f"{settings.device}-{digest(settings.image)}"
    )


class Run(Strict):
    """One planned run. ``key`` identifies its design; its record is ``<name>.<key>.json``."""

    name: str
    """Readable name, unique in the study and safe as a file name."""
    key: str
    """Hash (eight hex digits) of everything that could change the result."""
    settings: Settings
    """The resolved configuration."""
    setting: Setting
    """Its level of each factor."""
    block: int = Field(ge=0, le=2**31)
    """Number of the block (replicate), from 1. Each block holds each configuration once."""
    position: int = Field(ge=0, le=2**31)
    """Place in the seeded order of the whole study, from 1."""
    dataset: str
    """Name of the folder in `results/data` with this run's manifest; empty for a command."""
    weights: str
    """Name of the file in `weights` with the decision for this run's model; empty for a
    command."""
    environment: str | None = None
    """Name of its environment of packages; none: the start's."""
    unavailable: str | None = None
    """Reason why this machine cannot make the run; none if it can."""

    @property
    def file(self) -> str:
        """File name of the record."""
        return f"{self.name}.{self.key}.json"

    @property
    def image(self) -> str:
        """Name of the image in which it executes: its device's, or one of its own."""
        return image_name(self.settings)


class Node(Strict):
    """One of the machines of a run, as its job reaches it."""

    address: str
    """Address at which the others find it."""
    command: list[str]
    """Command that executes the rest of its arguments there."""


class Job(Strict):
    """The order of a launcher to a training process. Paths are relative to the working
    directory."""

    run: Run
    study: str
    results: str
    seed: int
    packages: dict[str, str] = {}
    """Versions that the process has to find, by the packages' names."""
    paced: dict[str, Settings] = {}
    """Settings of which a few steps are made, by the names of their paces: the run's own first.
    Nothing of it is a number. Empty for a run that counts."""
    reference_workload: bool = True
    nodes: list[Node] = []
    """The machines of a run on several; empty for all on this one."""
