"""A GPU in a container, as far as it goes without one: stand-ins take the place of NVIDIA's hooks.

The engines are real, and of their own, so that no other test sees them. The image is built from the
project's Dockerfile, with a lock of one package and a certificate of a site.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from study.artifacts.prepared import ImageRequest
from study.base.errors import StudyError
from study.config.settings import Settings
from study.host.engine import base, docker, lifetime
from study.host.engine.docker import CDI_FOLDERS, MENDED_CRUN, Docker, Podman
from tests.conftest import ROOT
from tests.containers.test_docker import LOOKS
from tests.waiting import wait_for

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("containers")]

HOOK = f"""#!{sys.executable}
import json, os, sys
bundle = json.load(sys.stdin)["bundle"]
with open(os.path.join(bundle, "config.json")) as file:
    config = json.load(file)
told = [one for one in config["process"]["env"] if one.startswith(("NVIDIA_", "CDI_"))]
with open(os.path.join(bundle, config["root"]["path"], "from-the-hook"), "w") as file:
    json.dump(sorted(told), file)
"""
"""Writes into the container's root what it is told, as NVIDIA's hooks write links and caches."""
GPUS = ("0", "1", "GPU-abc")


@contextmanager
def engine_of_its_own(folder: Path) -> Iterator[None]:
    """A daemon that finds the hook on its path, as one does beside the toolkit, for all clients of
    this process."""
    (folder / "bin").mkdir(parents=True)
    hook = folder / "bin" / "nvidia-container-runtime-hook"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    path = f"{folder / 'bin'}:{os.environ['PATH']}:/usr/sbin"
    address = f"unix://{folder / 'socket'}"
    places = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
    line = ["dockerd", "--host", address, "--bridge=none", "--iptables=false"]
    line += [f"--{name}={folder / place}" for name, place in places.items()]
    with (
        pytest.MonkeyPatch.context() as patch,
        (folder / "log").open("w") as log,
        subprocess.Popen(line, stdout=log, stderr=log, env=os.environ | {"PATH": path}) as daemon,
    ):
        patch.setenv("DOCKER_HOST", address)
        patch.setenv("PATH", path)
        try:
            wait_for(lambda: Docker().why_not() is None, 60, "the engine answers")
            yield
        finally:
            daemon.terminate()


def small_request(folder: Path, base_image: str) -> ImageRequest:
    """An image for a GPU from a lock of one package."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = re.search(r"^certifi==[\s\S]*?(?=^\w)", text, re.MULTILINE)
    assert found
    lock = folder / "requirements.lock"
    lock.write_text(found[0], encoding="utf-8")
    return ImageRequest(
        device="cuda",
        lock=str(lock),
        kind="built",
        reference="study-test:small",
        base_image=base_image,
        identity="0a1b2c3d",
    )


@pytest.fixture(scope="module")
def image(
    base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path, str]]:
    """The image's id, an archive of it, and the words of its build's log; the engine stands while
    the tests of this file run."""
    folder = tmp_path_factory.mktemp("stand-ins")
    saved = folder / "base.tar"
    base.ask("docker", "save", "--output", str(saved), base_image, seconds=600)
    with engine_of_its_own(folder / "engine"), pytest.MonkeyPatch.context() as patch:
        base.ask("docker", "load", "--input", str(saved), seconds=600)
        certificates = folder / "docker" / "certificates"
        certificates.mkdir(parents=True)
        ssl = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", os.devnull]
        ssl += ["-subj", "/CN=site", "-out", str(certificates / "site.crt")]
        subprocess.run(ssl, check=True, capture_output=True)
        patch.setattr(docker, "ROOT", folder)
        patch.setattr(docker, "CERTIFICATES", certificates)
        with (folder / "log").open("w", encoding="utf-8") as log:
            Docker().build(small_request(folder, base_image), log)
        stored = Docker().image("study-test:small")
        assert stored
        archive = folder / "image.tar"
        base.ask("docker", "save", "--output", str(archive), "study-test:small", seconds=600)
        yield stored.id, archive, (folder / "log").read_text(encoding="utf-8")


def looks(engine: Docker, image: str, folder: Path) -> dict[str, Any]:
    """What there is in a container with a GPU, which is started as a run's is; and what the hook
    left."""
    code = LOOKS.replace("PATHS", str(["/x", "/opt/venv/x", "/tmp/x", "/scratch/x"]))
    code += "print(open('/from-the-hook').read())"
    with (
        lifetime.scratch_folder(folder) as scratch,
        (folder / "log").open("w", encoding="utf-8") as log,
    ):
        settings = Settings.model_validate({"device": "cuda"})
        command = ["python", "-c", code]
        ended = lifetime.enter(
            engine, image, command, scratch, [], log, "a test", settings=settings, gpus=True
        )
    assert ended.code == 0, ended.tail
    found, told = (json.loads(line) for line in ended.tail[-2:])
    return {**found, "told": told}


SHUT = {
    "networks": ["lo"],
    "written": ["/tmp/x", "/scratch/x"],
    "capabilities": ["0" * 16] * 5,
    "privileges": ["1"],
}
"""What a closed container has."""


def shut(found: dict[str, Any]) -> bool:
    """Whether a container with a GPU is as closed as any other."""
    return found["user"] != [0, 0] and SHUT.items() <= found.items()


@pytest.mark.parametrize("visible", ["", "0,1", "GPU-abc"])
def test_docker_hands_the_gpus_that_are_asked_for_to_the_hook_of_a_closed_container(
    visible: str, image: tuple[str, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    else:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert Docker().gpu_trouble() is None
    found = looks(Docker(), image[0], tmp_path)
    assert shut(found)
    wanted = {
        f"NVIDIA_VISIBLE_DEVICES={visible or 'all'}",
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    }
    assert wanted <= set(found["told"])


def test_a_sites_certificate_is_in_no_image_and_what_it_helped_to_install_is(
    image: tuple[str, Path, str],
) -> None:
    assert re.search(r"[1-9]\d* added", image[2])
    look = "ls /usr/local/share/ca-certificates /tmp; python -c 'import certifi'; ls /opt"
    run = ["run", "--rm", "--network", "none", image[0], "sh", "-c", look]
    said = base.ask("docker", *run)
    assert "site.crt" not in said
    assert said.split()[-1] == "venv"
    labels = Docker().inspect("image", image[0])["Config"]["Labels"]
    assert labels["org.opencontainers.image.created"].startswith("20")
    assert {"source", "base.digest", "base.name", "revision"} <= {
        name.removeprefix("org.opencontainers.image.") for name in labels
    }


def buildkit() -> str | None:
    """A client that can build with BuildKit; None if there is none."""
    for folder in os.environ["PATH"].split(":"):
        client = Path(folder, "docker")
        if client.exists():
            said = subprocess.run([client, "--version"], capture_output=True, text=True).stdout
            with_plugin = not subprocess.run(
                [client, "buildx", "version"], capture_output=True
            ).returncode
            if with_plugin or "version 20." in said:
                return str(client)
    return None


def test_buildkit_builds_the_same_image(
    image: tuple[str, Path, str], base_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = buildkit()
    if client is None:
        pytest.skip("no client of docker here can build with BuildKit")
    monkeypatch.setenv("PATH", f"{Path(client).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_BUILDKIT", "1")
    wanted = small_request(tmp_path, base_image)
    wanted = wanted.model_copy(update={"reference": "study-test:buildkit"})
    with (tmp_path / "log").open("w", encoding="utf-8") as log:
        Docker().build(wanted, log)
    stored = Docker().image("study-test:buildkit")
    assert stored
    assert stored.id != image[0]
    assert shut(looks(Docker(), stored.id, tmp_path))


@pytest.fixture(scope="module")
def podman(image: tuple[str, Path, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The image in a storage of its own, and a CDI file whose hook runs before the root is
    entered."""
    if shutil.which("podman") is None or shutil.which("crun") is None:
        pytest.skip("podman and crun are not installed")
    if Podman().gpu_trouble() is None:
        pytest.skip("a CDI file describes true GPUs here")
    folder = tmp_path_factory.mktemp("podman")
    hook = folder / "hook"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    edits = {"hooks": [{"hookName": "createContainer", "path": str(hook), "args": ["hook"]}]}
    devices = [
        {"name": name, "containerEdits": {"env": [f"CDI_{name}=1"]}} for name in ("all", *GPUS)
    ]
    described = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}
    description = Path(CDI_FOLDERS[0], "nvidia-stand-in.json")
    description.parent.mkdir(parents=True, exist_ok=True)
    storage = folder / "storage.conf"
    lines = ["[storage]", 'driver = "overlay"']
    lines += [f'{name} = "{folder / name}"' for name in ("graphroot", "runroot")]
    storage.write_text("\n".join(lines))
    description.write_text(json.dumps(described | {"containerEdits": edits}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_STORAGE_CONF", str(storage))
        try:
            base.ask("podman", "load", "--input", str(image[1]), seconds=600)
            yield "localhost/study-test:small"
        finally:
            description.unlink()
            base.ask("podman", "rmi", "--all", "--force", seconds=600)


def test_podman_hands_over_gpus_where_its_crun_is_old_or_mended(
    podman: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,GPU-abc")
    found = looks(Podman(), podman, tmp_path)
    assert shut(found)
    assert {"CDI_0=1", "CDI_GPU-abc=1"} <= set(found["told"])
    version = base.ask("crun", "--version").split()[2]
    old = tuple(map(int, version.split(".")[:2])) < MENDED_CRUN
    assert str(Podman().gpu_note()).startswith("with a GPU runc is taken") == old


def test_without_runc_an_old_crun_gets_a_root_that_its_hooks_can_write_and_nobody_inside(
    podman: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "runc" else which(name))
    if Podman().gpu_note() is None:
        pytest.skip("this crun is mended")
    plain = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--network=none"]
    try:
        base.ask("podman", "--runtime", "crun", "run", "--rm", *plain, podman, "true")
    except StudyError as error:
        pytest.skip(f"crun starts no container on this machine: {error}")
    assert shut(looks(Podman(), podman, tmp_path))
    monkeypatch.setattr(Podman, "_root", Docker._root)
    with pytest.raises(StudyError, match="did not start the container"):
        looks(Podman(), podman, tmp_path)
