"""One planned run, and the files that its launcher and its process hand to each other."""

from typing import Any

from pydantic import Field

from study.base.strict import Strict
from study.config.settings import Settings

RESULT, TELEMETRY, CEILINGS = "result.json", "telemetry.csv", "ceilings.json"


class Run(Strict):
    """One planned run. ``key`` names its design; the record is ``<name>.<key>.json``."""

    name: str = Field(description="Readable, unique in the study, safe as a file name.")
    key: str = Field(description="Eight hex digits over all that decides the result.")
    settings: Settings = Field(description="The resolved configuration.")
    factors: dict[str, Any] = Field(description="This run's level of each factor.")
    block: int = Field(description="Replicate: each block holds every configuration once.")
    position: int = Field(description="Place in the seeded order of the whole study, from 1.")
    dataset: str = Field(description="The folder under `results/data` with this run's manifest.")
    weights: str = Field(description="The file under `weights` with the decision for this run's model.")
    unavailable: str | None = Field(None, description="Why this machine cannot run it.")

    @property
    def file(self) -> str:
        """The record's file name."""
        return f"{self.name}.{self.key}.json"


class Job(Strict):
    """The order of a launcher to a training process. Paths are relative to the working directory."""

    run: Run
    study: str
    results: str
    seed: int
    ceilings: bool = False
