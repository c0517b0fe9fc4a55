"""Apptainer: an image is a file, and a container is a child process of ours."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from study.artifacts.layout import Results
from study.artifacts.prepared import ImageRequest
from study.base.errors import StudyError
from study.base.files import file_sha256, whole
from study.host.engine.base import BUILD_SECONDS, Engine, StoredImage, Trouble, ask, last_words
from study.host.engine.container import SCRATCH, UNPRIVILEGED, WORK, Box, Mount, limits, mounts, pairs
from study.host.supervise import Spawned, supervise


class Apptainer(Engine):
    """Apptainer."""

    name = "apptainer"
    keeps_containers = False

    def argv(self, box: Box) -> list[str]:
        """Return the command line that executes ``box``: no network, no privileges, no home."""
        line = [self.name, "--silent", "exec", "--containall", "--cleanenv", "--no-home", "--no-privs", "--pwd", WORK]
        if not box.network:
            line += ["--net", "--network", "none"]
        if box.user[0] == UNPRIVILEGED:  # only root may change the user, and only root has to
            line += ["--security", f"uid:{box.user[0]}", "--security", f"gid:{box.user[1]}"]
        line += limits(box)
        if box.gpus is not None:
            line += ["--nv"]
        temporary = Mount(box.scratch / "tmp", "/tmp", writable=True)  # noqa: S108 - its own /tmp holds 64 MB
        shared = Mount(Path("/dev/shm"), "/dev/shm", writable=True)  # noqa: S108 - the same
        line += mounts([*box.mounts, temporary, shared, Mount(box.scratch, SCRATCH, writable=True)], "ro")
        # apptainer splits its --env at commas: env sets them inside instead.
        return [*line, box.image, "env", *pairs(self.variables(box).items()), *box.command]

    def for_the_client(self, passed: Mapping[str, str]) -> dict[str, str]:
        """Return the variables with the prefix without which apptainer does not pass them on."""
        return {f"APPTAINERENV_{name}": value for name, value in passed.items()}

    def _gpu_variables(self, gpus: tuple[str, ...]) -> dict[str, str]:
        return {"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {}

    def version(self) -> str:
        """Return the version of apptainer."""
        return ask(self.name, "--version").strip().removeprefix("apptainer version ")

    def image(self, reference: str) -> StoredImage | None:
        """Return the image in the file ``reference``. It runs by its path."""
        path = Path(reference)
        return StoredImage(f"sha256:{file_sha256(path)}", reference) if path.is_file() else None

    def has_image(self, run_as: str) -> bool:
        """Return whether the image's file exists."""
        return Path(run_as).is_file()

    def image_trouble(self, wanted: ImageRequest, fetch: bool) -> Trouble | None:
        """Return a reason if the image would have to be built from our Dockerfile, or None."""
        if wanted.kind != "built":
            return None
        name = f"images.{wanted.device}"
        return Trouble(f"apptainer builds no Dockerfile: name a .sif, an archive or a reference as {name}")

    def bring(self, wanted: ImageRequest, results: Path, log: TextIO) -> str:
        """Return the path of the image's file: the given one, or one made from an archive or a reference."""
        if wanted.reference.endswith(".sif"):
            return wanted.reference
        target = Results(results).image_file(wanted.device, wanted.identity)
        if not target.is_file():
            self._convert(wanted, target, log)
        return str(target.resolve())

    def _convert(self, wanted: ImageRequest, target: Path, log: TextIO) -> None:
        scheme = "docker-archive:" if wanted.kind == "archive" else "docker://"
        with whole(target) as temporary:
            line = [self.name, "build", "--force", str(temporary), f"{scheme}{wanted.reference}"]
            ended = supervise(Spawned(line, os.environ), log, f"image {wanted.device}", BUILD_SECONDS)
            if ended.code:
                raise StudyError(f"images.{wanted.device}: apptainer made no image: {last_words(ended.tail)}")
