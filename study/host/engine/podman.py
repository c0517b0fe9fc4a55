"""Podman: Docker's command line without a daemon, for a user without root."""

from pathlib import Path

from study.host.engine.arguments import each
from study.host.engine.client import Trouble
from study.host.engine.container import UNPRIVILEGED, Box
from study.host.engine.docker import Docker

CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")


class Podman(Docker):
    """Podman. It differs from Docker in users, groups and GPUs."""

    name = "podman"

    def _groups(self, box: Box) -> list[str]:
        """Return the options with which the caller keeps its own number and groups inside, unless it is root."""
        if box.user[0] == UNPRIVILEGED:
            return super()._groups(box)
        return ["--userns", "keep-id", *each("--group-add", ["keep-groups"] if box.groups else [])]

    def _gpus(self, gpus: tuple[str, ...]) -> list[str]:
        return each("--device", [f"nvidia.com/gpu={gpu}" for gpu in gpus or ("all",)])

    def _gpu_variables(self, gpus: tuple[str, ...]) -> dict[str, str]:
        return {}

    def version(self) -> str:
        """Return the version of podman."""
        return self.ask("info", "--format", "{{.Version.Version}}").strip()

    def is_rootless(self) -> bool:
        """Return False: the caller keeps its own number inside, also without root."""
        return False

    def gpu_trouble(self) -> Trouble | None:
        """Return a reason if no CDI file describes an NVIDIA GPU, or None."""
        if any(path for folder in CDI_FOLDERS for path in Path(folder).glob("*nvidia*")):
            return None
        return Trouble("podman cannot give a container the GPU: there is no CDI description (nvidia-ctk cdi generate)")
