"""`config/config.yaml`: which studies run, and where."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from study.base.errors import ValueRefused
from study.base.strict import Declared
from study.config.sections import MOST_SECONDS, Device, ImageName


class Images(Declared):
    """Prebuilt container images, used instead of those that are built from `docker/Dockerfile`."""

    cpu: ImageName | None = None
    """Image for runs on a CPU: a reference that the engine has or can pull, or the path of an
    archive (from `docker save`)."""
    cuda: ImageName | None = None
    """Image for runs on a GPU, in the same forms."""


class MachineClass(Declared):
    """What a run asks an executor for to get a machine of one class: resources by Snakemake's names
    of them."""

    slurm_partition: str | None = Field(None, min_length=1)
    """SLURM's partition."""
    constraint: str | None = Field(None, min_length=1)
    """SLURM's constraint, a feature of the nodes."""
    gres: str | None = Field(None, min_length=1)
    """SLURM's generic resources, such as `gpu:a100:1`."""
    slurm_extra: str | None = Field(None, min_length=1)
    """Further arguments of `sbatch`."""


class Selection(Declared):
    """The keys of `config/config.yaml`, with the changes that `--config` makes."""

    studies: list[str] = Field(default_factory=lambda: ["quickstart"])
    """Names of files in `config/studies` or `replications/*/studies`, without `.yaml`; or paths of
    files, each of which ends in `.yaml`."""
    size: Literal["full", "reduced"] = "full"
    """`full`: each study as its file says. `reduced`: with the study's `reduced` keys, which fit a
    machine with two CPU cores; the report lists them. `overrides` take precedence over `reduced`
    keys."""
    devices: Literal["auto"] | list[Device] = "auto"
    """`auto`: the devices that each study names. A list replaces those devices."""
    container: Literal["auto", "docker", "podman", "none"] = "auto"
    """The container engine in which runs execute. `auto`: docker, or else podman, if its engine
    answers and the images are there or can be had, otherwise the host; the report says why. A named
    engine that cannot be used is an error. `none`: the host."""
    images: Images = Field(default_factory=Images)
    base_image: ImageName | None = None
    """Base image of `docker/Dockerfile`, instead of its pinned default: any Debian image with
    Python 3.11 to 3.13, `venv` and `ca-certificates`."""
    machines: dict[str, MachineClass] = Field(default_factory=dict)
    """Classes of machines by the names that a study's `machine` has, with what a run asks an
    executor for: `{a100: {slurm_partition: gpu, constraint: a100}}`."""
    warm_up_run: bool = True
    """True to execute a few steps of each way of computing on each device before the first block of
    a start, so that no run that counts meets cold caches, kernels and clocks, and to foretell what
    a block takes. They are kept in `results/warm_up_runs`, and in no number. Without them the
    analysis leaves out the first run of each start if it is slow."""
    quiet_wait_seconds: float = Field(60, ge=0, le=MOST_SECONDS)
    """Longest wait before a run, in seconds, for a machine on which others cross no limit of
    `evidence`. 0: no wait. A run that began without a quiet machine is recorded as such. Waiting
    and measuring anew together take at most a quarter of a start, by what its warm-up runs and its
    earlier runs took; a warm-up run does not wait."""
    time_budget_minutes: float | None = Field(None, ge=0, le=MOST_SECONDS // 60)
    """Time of a start, in minutes, its warm-up runs included. It begins no block of runs that it
    cannot end within this time, judged by the earlier runs of each setting or by the warm-up runs,
    and says what would fit; the next start makes what is left. 0: measure nothing, and report what
    is there. none: no limit."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Dotted keys of the selected studies with new values or lists of levels."""

    @model_validator(mode="after")
    def _something_is_selected(self) -> Self:
        for key, value in (("studies", self.studies), ("devices", self.devices)):
            if not value:
                raise ValueRefused(key=key, value=[], allowed="at least one")
        return self
