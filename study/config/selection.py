"""`config/config.yaml`: which studies run, and where."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from study.base.strict import Strict
from study.config.sections import Device


class Images(Strict):
    """Images that are there already, in place of those that `docker/Dockerfile` makes."""

    cpu: str | None = Field(
        None,
        min_length=1,
        description="Image of the runs on a CPU: a reference that the engine knows or can pull, or the path of an "
        "archive (`docker save`; for apptainer also a `.sif`).",
    )
    cuda: str | None = Field(None, min_length=1, description="The same for the runs on a GPU.")


class Selection(Strict):
    """`config/config.yaml`, and what `--config` changes of it."""

    studies: list[str] = Field(
        default_factory=lambda: ["quickstart"], description="Files of `config/studies`, by name."
    )
    size: Literal["full", "reduced"] = Field(
        "full",
        description="`reduced`: each study's `reduced` keys, for a machine of two CPU cores; the report says which. "
        "Overrides count above it.",
    )
    devices: Literal["auto"] | list[Device] = Field(
        "auto", description="`auto`: the devices that each study names. A list replaces them."
    )
    container: Literal["auto", "docker", "podman", "apptainer", "none"] = Field(
        "auto",
        description="Which engine runs the training. `auto`: docker where its engine answers and the images are there "
        "or can be built, else the host, and the report says why. An engine named outright is an error where it "
        "cannot serve. `none`: the host.",
    )
    images: Images = Field(default_factory=lambda: Images.model_validate({}))
    base_image: str | None = Field(
        None,
        min_length=1,
        description="What `docker/Dockerfile` builds on, in place of its own pinned default: any Debian image with "
        "Python 3.11 to 3.13, `venv` and `ca-certificates`.",
    )
    overrides: dict[str, Any] = Field(
        default_factory=dict, description="Dotted keys of the chosen studies with new values or lists of levels."
    )

    @model_validator(mode="after")
    def _something_is_selected(self) -> Self:
        for key, value in (("studies", self.studies), ("devices", self.devices)):
            if not value:
                raise ValueError(f"{key}: [] is not allowed: name at least one")
        return self
