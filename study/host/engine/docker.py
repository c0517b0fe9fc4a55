"""Docker, a daemon that keeps containers and images; and Podman, its command line without a daemon
and without root."""

import json
import os
import re
import resource
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TextIO

from study import __version__
from study.artifacts.prepared import ImageRequest
from study.base.errors import StudyError, printable, say
from study.base.files import ROOT, file_sha256, git_commit, git_source
from study.config.sections import Device
from study.host.engine.base import (
    BUILD_SECONDS,
    LOAD_SECONDS,
    State,
    StoredImage,
    Trouble,
    ask,
    last_words,
)
from study.host.engine.container import (
    HOST,
    SCRATCH,
    UNPRIVILEGED,
    USER,
    WORK,
    Box,
    Mount,
    csv_line,
    each,
    id_file,
    mounted,
    pairs,
)
from study.host.supervise import Spawned, supervise

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Variables that a build takes from the caller."""
DOCKERFILE = ROOT / "docker" / "Dockerfile"
LOCK = ROOT / "requirements.lock"
INSTALLER = ROOT / "requirements-uv.lock"
"""The lock of what installs the other. It changes nothing of what is installed, so it is in no
key."""
TARGETS: dict[Device, str] = {"cpu": "cpu", "cuda": "gpu"}
CERTIFICATES = ROOT / "docker" / "certificates"
PROCESSES = 4096
"""Processes of a container at most, and, where it has to be said, open files of each."""
GPU_TOOLS = (
    "nvidia-container-runtime-hook",
    "nvidia-container-cli",
    "nvidia-ctk",
    "nvidia-container-toolkit",
)


def base_of(dockerfile: str) -> str:
    """Return the default base image in the text of a Dockerfile. Raise :class:`StudyError` if it
    names none."""
    found = re.search(r"^ARG BASE_IMAGE=(\S+)", dockerfile, re.MULTILINE)
    if not found:
        raise StudyError("docker/Dockerfile: names no base image: ARG BASE_IMAGE=... is missing")
    return found.group(1)


@contextmanager
def _context(wanted: ImageRequest) -> Iterator[Path]:
    """Yield the folder from which an image is built: the checkout's, or one that holds another lock
    in its place."""
    if wanted.lock is None:
        yield ROOT
        return
    with TemporaryDirectory() as folder:
        shutil.copy(wanted.lock, Path(folder, LOCK.name))
        shutil.copy(INSTALLER, folder)
        if CERTIFICATES.is_dir():
            shutil.copytree(CERTIFICATES, Path(folder, CERTIFICATES.relative_to(ROOT)))
        yield Path(folder)


class Docker:
    """Docker, and what other engines with its command line have in common with it."""

    name: ClassVar[str] = "docker"
    """Also the name of its client program. It stands in plans and records."""

    def variables(self, box: Box) -> dict[str, str]:
        """Return the environment variables of the container. No other variable of the caller
        reaches it."""
        values = {
            "HOME": "/tmp",  # noqa: S108 - fastai and torch.hub write there
            "USER": USER,
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108
            "PYTHONPATH": WORK,
            "PYTHONUNBUFFERED": "1",
            "STUDY_CONTAINER": self.name,
        }
        gpus = {"CUDA_VISIBLE_DEVICES": ""} if box.gpus is None else self._gpu_variables(box.gpus)
        return values | gpus | dict(box.environment)

    def why_not(self) -> Trouble | None:
        """Return the reason why the engine cannot be used. None if it answers."""
        if shutil.which(self.name) is None:
            return Trouble(f"{self.name} is not installed")
        try:
            self.version()
        except StudyError as error:
            return Trouble(f"{self.name} does not answer", str(error))
        return None

    def argv(self, box: Box) -> list[str]:
        """Return the command line that executes ``box``: no network, no capabilities, no writable
        root."""
        uid, gid = box.user
        line = [self.name, *self._runtime(box), "run", "--name", box.name]
        line += ["--cidfile", str(id_file(box.scratch))]
        line += shlex.split(
            f"--init --pull never --log-driver none --hostname {HOST} --workdir {box.folder} "
            f"--user {uid}:{gid} --network none"
        )
        line += self._root(box)
        # torch.compile executes in /tmp. With SELinux a container could not read the user's
        # folders, and relabelling would change these.
        line += shlex.split(
            "--tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777 --cap-drop ALL "
            f"--security-opt no-new-privileges --pids-limit {PROCESSES} "
            f"--security-opt label=disable --shm-size {box.shared_memory_bytes}"
        )
        line += [*self._groups(box), *self._limits(box)]
        line += [] if box.gpus is None else self._gpus(box.gpus)
        line += each("--env", pairs(self.variables(box)))
        line += each("--label", pairs(box.labels))
        shown = [*box.mounts, Mount(box.scratch, SCRATCH, writable=True)]
        line += each("--mount", map(mounted, shown))
        return [*line, box.image, *box.command]

    def _runtime(self, box: Box) -> list[str]:
        return []

    def _root(self, box: Box) -> list[str]:
        return ["--read-only"]

    def gpu_note(self) -> str | None:
        """Return what is different about a container with a GPU here; None for nothing."""
        return None

    def _groups(self, box: Box) -> list[str]:
        return each("--group-add", map(str, box.groups))

    def _limits(self, box: Box) -> list[str]:
        """Return the options for memory and CPUs. Swap adds nothing to the memory."""
        line = []
        if box.memory_bytes:
            line += ["--memory", str(box.memory_bytes), "--memory-swap", str(box.memory_bytes)]
        if box.cpus:
            line += ["--cpuset-cpus", ",".join(map(str, box.cpus))]
        return line

    def _gpus(self, gpus: tuple[str, ...]) -> list[str]:
        return ["--gpus", csv_line([f"device={','.join(gpus)}"]) if gpus else "all"]

    def _gpu_variables(self, gpus: tuple[str, ...]) -> dict[str, str]:
        # The toolkit's older hook reads this, and the image sets "all".
        return {"NVIDIA_VISIBLE_DEVICES": ",".join(gpus) or "all"}

    def version(self) -> str:
        """Return the version of the daemon."""
        return ask(self.name, "version", "--format", "{{.Server.Version}}").strip()

    @cached_property
    def is_rootless(self) -> bool:
        """Whether the daemon runs rootless: the caller is then root inside."""
        return "rootless" in ask(self.name, "info", "--format", "{{json .SecurityOptions}}")

    def gpu_trouble(self) -> Trouble | None:
        """Return a reason if the NVIDIA Container Toolkit is missing, or None."""
        if any(map(shutil.which, GPU_TOOLS)) or "nvidia" in ask(
            self.name, "info", "--format", "{{json .Runtimes}}"
        ):
            return None
        return Trouble(
            "docker cannot give a container the GPU: the NVIDIA Container Toolkit is not installed"
        )

    def inspect(self, kind: str, name: str) -> dict[str, Any]:
        """Return the description of an image or a container. Raise :class:`StudyError` if there is
        none."""
        values: list[dict[str, Any]] = json.loads(ask(self.name, kind, "inspect", name))
        return values[0]

    def image(self, reference: str) -> StoredImage | None:
        """Return the image with a reference or an id. It runs by its id."""
        try:
            values = self.inspect("image", reference)
        except StudyError:
            return None
        identity = "sha256:" + str(values["Id"]).removeprefix("sha256:")
        digests = [str(digest).rsplit("@", 1)[-1] for digest in values.get("RepoDigests") or []]
        config = values.get("Config") or {}
        return StoredImage(identity, next(iter(digests), None), config.get("Labels") or {})

    def image_trouble(self, wanted: ImageRequest) -> Trouble | None:
        """Return the reason why neither the image nor its base image is here or in its registry, or
        None. Nothing is pulled."""
        missing = wanted.base_image or wanted.reference
        key = f"images.{wanted.device}"
        if wanted.kind == "archive" or self.image(wanted.reference) or self.image(missing):
            return None
        if wanted.kind == "reference" and "@" not in missing:
            return Trouble(
                f"the image of {key} is not here, and its tag may name another one tomorrow: name "
                f"it with its checksum (@sha256:...), or pull it first: {self.name} pull {missing}"
            )
        try:
            # podman refuses a tag beside a checksum, which alone says what is meant
            ask(self.name, "manifest", "inspect", re.sub(":[^:/@]+@", "@", missing))
        except StudyError as error:
            noun = "base_image" if wanted.kind == "built" else "image"
            return Trouble(
                f"{self.name}: the {noun} of {key} is not here nor in its registry",
                f"{missing}: {error}",
            )
        return None

    def build(self, wanted: ImageRequest, log: TextIO) -> float | None:
        """Build the image from our Dockerfile if it is missing. Return the seconds that it took, or
        None."""
        if self.image(wanted.reference):
            return None
        begin, title = time.perf_counter(), f"image {wanted.device}"
        with _context(wanted) as context:
            ended = supervise(
                Spawned(self._build_argv(wanted, context), os.environ), log, title, BUILD_SECONDS
            )
        if ended.code:
            why = last_words(ended.tail)
            if "CERTIFICATE_VERIFY_FAILED" in "".join(ended.tail):
                why = (
                    "a certificate is not known inside; put your network's own (*.crt) in "
                    "docker/certificates"
                )
            raise StudyError(
                f"{title}: the build failed: {why}; to run without containers: --config "
                "container=none"
            )
        return time.perf_counter() - begin

    def _build_argv(self, wanted: ImageRequest, context: Path) -> list[str]:
        base = str(wanted.base_image)
        values = {
            "BASE_DIGEST": base.partition("@")[2] or "unknown",
            "BASE_IMAGE": base,
            "CREATED": datetime.now(UTC).isoformat(timespec="seconds"),
            "LOCK_SHA256": file_sha256(context / LOCK.name),
            "REVISION": git_commit() or "unknown",
            "SOURCE": git_source() or "unknown",
            "VERSION": __version__,
        }
        if any(CERTIFICATES.glob("*.crt")):  # what they helped to install is copied
            values |= {"STAGE": "system", "COPIED": "/opt/venv"}
        line = [self.name, "build", "--force-rm", "--network", "host"]
        line += ["--target", TARGETS[wanted.device], "--tag", wanted.reference]
        line += ["--file", str(DOCKERFILE), *each("--build-arg", pairs(values))]
        line += each("--build-arg", (name for name in PROXIES if name in os.environ))
        return [*line, str(context)]

    def bring(self, wanted: ImageRequest, log: TextIO) -> str:
        """Load or pull the image if it is missing, however long that takes. Return its
        reference."""
        if wanted.kind == "archive":
            return self._load(Path(wanted.reference))
        if self.image(wanted.reference) is None:
            pull = Spawned([self.name, "pull", wanted.reference], os.environ)
            title = f"image {wanted.device}"
            ended = supervise(pull, log, title, heard=lambda line: say(printable(line.rstrip())))
            if ended.code:
                raise StudyError(
                    f"images.{wanted.device}: {wanted.reference} cannot be pulled: "
                    f"{last_words(ended.tail)}"
                )
        return wanted.reference

    def _load(self, archive: Path) -> str:
        """Load an archive that ``save`` made, and return the reference of its only image."""
        said = ask(self.name, "load", "--input", str(archive), seconds=LOAD_SECONDS)
        loaded = re.findall(r"^Loaded image(?:\(s\))?(?: ID)?: (\S+)", said, re.MULTILINE)
        if len(loaded) != 1:
            raise StudyError(
                f"images: {archive.name!r} holds {len(loaded)} images; allowed: an archive of "
                "one image"
            )
        return str(loaded[0])

    def containers(self, label: str) -> list[str]:
        """Return the ids of the containers with ``label``, running or not."""
        return ask(self.name, "ps", "--all", "--quiet", "--filter", f"label={label}").split()

    def state(self, identity: str) -> State | None:
        """Return the state of the container with this id or name. None if there is none or nobody
        answers."""
        try:
            values = self.inspect("container", identity)
        except StudyError:
            return None
        now = values["State"]
        return State(
            name=str(values["Name"]).removeprefix("/"),
            labels=values["Config"].get("Labels") or {},
            running=bool(now.get("Running")),
            started=not str(now.get("StartedAt", "")).startswith("0001-"),
            exit_code=int(now.get("ExitCode", 0)),
            oom_killed=bool(now.get("OOMKilled")),
        )

    def remove(self, identity: str) -> None:
        """Stop and remove a container, if it exists and the daemon answers."""
        with suppress(StudyError):  # it is gone, or nobody answers and the next start removes it
            ask(self.name, "rm", "--force", "--volumes", identity)


MENDED_CRUN = (1, 26)
"""The version of crun from which a read-only container can have a GPU by a CDI file with hooks."""
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")


class Podman(Docker):
    """Podman. It differs from Docker in users, groups, limits and GPUs."""

    name = "podman"

    @cached_property
    def _old_crun(self) -> str | None:
        """The version of a crun that makes the root read-only before the hooks of an NVIDIA CDI
        file write into it (containers/crun, issue 1924); None where podman takes another runtime.
        """
        try:
            said = ask(self.name, "info", "--format", "{{.Host.OCIRuntime.Version}}")
        except StudyError:
            return None
        found = re.search(r"crun version ((\d+)\.(\d+)\S*)", said)
        old = found and (int(found[2]), int(found[3])) < MENDED_CRUN
        return found[1] if found and old else None

    def _runtime(self, box: Box) -> list[str]:
        runc = box.gpus is not None and self._old_crun and shutil.which("runc")
        return ["--runtime", "runc"] if runc else []

    def _root(self, box: Box) -> list[str]:
        writable = box.gpus is not None and self._old_crun and not shutil.which("runc")
        return [] if writable else super()._root(box)

    def gpu_note(self) -> str | None:
        """Return what takes the place of an old crun."""
        if self._old_crun is None:
            return None
        taken = "runc is taken" if shutil.which("runc") else "the container's root is writable"
        least = ".".join(map(str, MENDED_CRUN))
        return f"with a GPU {taken}, for crun {self._old_crun} is older than {least}"

    def _groups(self, box: Box) -> list[str]:
        """Return the options with which the caller keeps its own number and groups inside, unless
        it is root."""
        if box.user[0] == UNPRIVILEGED:
            return super()._groups(box)
        return ["--userns", "keep-id", *each("--group-add", ["keep-groups"] if box.groups else [])]

    def _limits(self, box: Box) -> list[str]:
        # By itself podman raises both as far as the kernel goes, which needs a capability that root
        # may lack.
        line = super()._limits(box)
        for name, which in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
            hard = resource.getrlimit(which)[1]
            most = PROCESSES if hard == resource.RLIM_INFINITY else min(PROCESSES, hard)
            line += ["--ulimit", f"{name}={most}:{most}"]
        return line

    def _gpus(self, gpus: tuple[str, ...]) -> list[str]:
        return each("--device", [f"nvidia.com/gpu={gpu}" for gpu in gpus or ("all",)])

    def _gpu_variables(self, gpus: tuple[str, ...]) -> dict[str, str]:
        return {}

    def version(self) -> str:
        """Return the version of podman."""
        return ask(self.name, "info", "--format", "{{.Version.Version}}").strip()

    @cached_property
    def is_rootless(self) -> bool:
        """Never: the caller keeps its own number inside, also without root."""
        return False

    def gpu_trouble(self) -> Trouble | None:
        """Return a reason if no CDI file describes an NVIDIA GPU, or None."""
        if any(list(Path(folder).glob("*nvidia*")) for folder in CDI_FOLDERS):
            return None
        return Trouble(
            "podman cannot give a container the GPU: there is no CDI description (nvidia-ctk "
            "cdi generate)"
        )
