"""The argv of one run for each engine, and the choice of an engine: all without one."""

import csv
import json
import resource
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from study.base.errors import StudyError
from study.base.files import INSTALLED
from study.config import own_model
from study.config.load import read_selection
from study.config.selection import Selection
from study.config.settings import Settings
from study.host.engine import container, engine_choice
from study.host.engine.container import (
    Box,
    Mount,
    check_readable,
    check_visible,
    own_mounts,
    settings_inside,
)
from study.host.engine.docker import base_of
from study.host.engine.engine_choice import ENGINES, EngineChoice, engine, request
from study.host.plan import checks
from study.host.plan.checks import check_training_stack
from tests.conftest import ROOT, plan_at, tiny_plan
from tests.errors import refused

ODD = Path("/data/a, \"b\":'c' é")
BOX = Box(
    image="sha256:1",
    command=["python", "-m", "study.training.job"],
    scratch=Path("/results/.scratch-1/scratch"),
    name=container.NAME,
    user=(1000, 100),
    mounts=[Mount(ODD, f"/data/{ODD.name}")],
    labels={container.LAUNCHER: "1.2.3"},
    shared_memory_bytes=2**30,
    memory_bytes=2**31,
    cpus=(0, 2),
)


DOCKERS = """
run --name study-measures --cidfile /results/.scratch-1/container-id --init --pull never --log-driver none
--hostname study-container --workdir /work --user 1000:100 --network none --read-only
--tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777 --cap-drop ALL --security-opt no-new-privileges --pids-limit 4096
--security-opt label=disable --shm-size 1073741824 GROUPS --memory 2147483648 --memory-swap 2147483648
--cpuset-cpus 0,2 LIMITS GPUS --env HOME=/tmp --env USER=study-user --env CUDA_DEVICE_ORDER=PCI_BUS_ID
--env MPLCONFIGDIR=/tmp/matplotlib --env PYTHONPATH=/work --env PYTHONUNBUFFERED=1 --env STUDY_CONTAINER=ENGINE
VARIABLES --label study.launcher=1.2.3 --mount type=bind,source=/photos,target=/data/photos,readonly
--mount type=bind,source=/results/.scratch-1/scratch,target=/scratch sha256:1 python -m study.training.job
"""


@pytest.mark.parametrize(
    ("name", "text", "groups", "gpus", "variables"),
    [
        ("docker", DOCKERS, "--group-add 7 --group-add 8", '--gpus "device=0,1"', "--env NVIDIA_VISIBLE_DEVICES=0,1 "),
        ("podman", DOCKERS, "--userns keep-id --group-add keep-groups",
         "--device nvidia.com/gpu=0 --device nvidia.com/gpu=1", ""),
    ],
)  # fmt: skip
def test_the_whole_command_line_is_the_one_that_was_reviewed(
    name: str, text: str, groups: str, gpus: str, variables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a container may do is this line alone: a change of it is a decision, and is made here too.

    Nothing of the caller's environment is in it.
    """
    for variable in ("OMP_NUM_THREADS", "SECRET", "no_proxy"):
        monkeypatch.setenv(variable, "1")
    text = text.replace("GROUPS", groups).replace("GPUS", gpus).replace("ENGINE", name)
    text = text.replace("VARIABLES", f"{variables}--env TORCH_HOME=/cache")
    monkeypatch.setattr(
        "resource.getrlimit",
        lambda which: (64, 1024) if which == resource.RLIMIT_NOFILE else (-1, -1),
    )
    monkeypatch.setattr(engine(name), "_old_crun", None, raising=False)  # whatever is installed
    own = "--ulimit nofile=1024:1024 --ulimit nproc=4096:4096"
    text = text.replace("LIMITS", own if name == "podman" else "")
    box = replace(
        BOX, groups=(7, 8), gpus=("0", "1"), environment={"TORCH_HOME": "/cache"},
        mounts=[Mount(Path("/photos"), "/data/photos")],
    )  # fmt: skip
    assert engine(name).argv(box) == [name, *text.split()]


@pytest.mark.parametrize("name", list(ENGINES))
def test_paths_with_commas_colons_quotes_and_spaces_reach_the_engine_whole(name: str) -> None:
    """The fields of every mount, as an engine written in Go reads them."""
    line = engine(name).argv(BOX)
    shown = [
        next(csv.reader([value], strict=True))
        for option, value in pairwise(line)
        if option == "--mount"
    ]
    assert ["type=bind", f"source={ODD}", f"target=/data/{ODD.name}", "readonly"] in shown
    assert ["type=bind", f"source={BOX.scratch}", "target=/scratch"] in shown
    with pytest.raises(StudyError, match="line break"):
        engine(name).argv(replace(BOX, mounts=[Mount(Path("/a\nb"), "/data/x")]))


def test_a_link_to_outside_the_folder_is_refused_before_a_container_starts(tmp_path: Path) -> None:
    shared, photos = tmp_path / "shared", tmp_path / "photos"
    for folder in (shared, photos):
        folder.mkdir()
        (folder / "a.jpg").touch(mode=0o644)
    (photos / "inside.jpg").symlink_to("a.jpg")
    (photos / "outside.jpg").symlink_to(shared / "a.jpg")
    check_visible(photos, ["a.jpg", "inside.jpg"], root=True)
    with pytest.raises(StudyError, match=r"'outside.jpg' is a link to outside the folder"):
        check_visible(photos, ["a.jpg", "outside.jpg"], root=False)
    (photos / "a.jpg").chmod(0o600)
    with pytest.raises(StudyError, match=r"'a.jpg' is readable only by root"):
        check_visible(photos, ["a.jpg"], root=True)


def test_root_becomes_nobody_inside_and_others_stay_who_they_are() -> None:
    # the caller, as a rootless docker calls him
    assert container.user_inside(1000, 100, rootless=True) == (0, 0)
    assert container.user_inside(0, 0) == (65532, 65532)
    assert container.user_inside(1000, 100) == (1000, 100)
    assert "--userns" not in engine("podman").argv(replace(BOX, user=(65532, 65532)))


def test_shared_memory_grows_with_the_loader() -> None:
    def of(**changes: object) -> int:
        return container.shared_memory_bytes(Settings.model_validate(changes), cpus=4)

    big = {
        "dataset": {"image_size": 224},
        "training": {"batch_size": 512},
        "loader": {"workers": 8},
    }
    assert of() == 2**30
    assert of(**big) == 2 * (2 * 8 + 1) * 512 * 3 * 224 * 224 * 4
    assert of(**big | {"loader": {"kind": "device"}}) == max(2**30, 2 * 512 * 3 * 224 * 224 * 4)
    more = big | {"loader": {"workers": 8, "prefetch_factor": 5}}
    assert of(**more) == 2 * (5 * 8 + 1) * 512 * 3 * 224 * 224 * 4


def test_paths_of_the_settings_are_mounted_and_renamed_and_nothing_else_changes(
    tmp_path: Path,
) -> None:
    photos = tmp_path / ODD.name
    weights = tmp_path / "my weights.pt"
    photos.mkdir()
    weights.touch()
    values = {
        "dataset": {"source": "folder", "path": str(photos)},
        "model": {"weights": str(weights)},
    }
    settings = Settings.model_validate(values)
    inside, shown = settings_inside(settings)
    there = (f"/data/{photos.name}", "/weights/my weights.pt")
    assert (inside.dataset.path, inside.model.weights) == there
    assert shown == [Mount(photos, there[0]), Mount(weights, there[1])]
    changed = {"dataset": settings.dataset, "model": settings.model}
    assert inside.model_copy(update=changed) == settings
    assert settings_inside(Settings.model_validate({})) == (Settings.model_validate({}), [])


def mounts_for(name: str) -> list[Mount]:
    """What is shown to a run with a user's own model."""
    model = {"name": name, "weights": "none"}
    return own_mounts(Settings.model_validate({"model": model, "training": {"freeze_epochs": 0}}))


def test_a_users_own_model_is_shown_to_its_runs(here: Path) -> None:
    assert mounts_for("nets.small:make") == []
    with refused("model.name", "nets.small:make"):
        own_model.check("nets.small:make", here, "docker")
    (here / "nets").mkdir()
    own_model.check("nets.small:make", here, "docker")
    assert mounts_for("nets.small:make") == [Mount(here / "nets", f"{container.WORK}/nets")]
    assert own_mounts(Settings.model_validate({})) == []


def test_a_replications_network_is_shown_from_wherever_a_start_is_made(here: Path) -> None:
    """Of the checkout, and of the folder of the start, whose own one of that name counts."""
    theirs = Mount(ROOT / "replications" / "gpu_lab", f"{container.WORK}/replications/gpu_lab")
    for name, before in (("mine", []), ("gpu_lab", [theirs])):
        model, own = f"replications.{name}.networks:small_net", here / "replications" / name
        assert mounts_for(model) == before
        own.mkdir(parents=True)
        assert mounts_for(model) == [Mount(own, f"{container.WORK}/replications/{name}")]


def test_of_a_module_in_the_folder_of_the_start_the_python_files_there_are_shown_and_nothing_else(
    here: Path,
) -> None:
    for name in ("nets.py", "blocks.py", "photos/a/0.png", "parts/small.py", "notes.md"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).touch()
    shown = [Mount(here / name, f"{container.WORK}/{name}") for name in ("blocks.py", "nets.py")]
    assert mounts_for("nets:mine") == shown


def test_what_root_may_read_alone_is_refused_before_a_container_starts(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(StudyError, match=r"closed: root's containers run as user 65532.*chmod"):
        check_readable([Mount(closed, "/data/closed")], (65532, 65532))
    check_readable([Mount(closed, "/data/closed")], (1000, 1000))


class TestTheChoiceOfAnEngine:
    @pytest.fixture(autouse=True)
    def _outside(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("STUDY_CONTAINER", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        self.bin = tmp_path

    def engine(self, script: str, name: str = "docker") -> None:
        """A client of that name on the PATH; ``$1 $2`` is what it is asked."""
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def choose(self, **config: object) -> EngineChoice:
        return engine_choice.choose_engine(read_selection(config))

    def test_auto_takes_podman_where_docker_is_missing_else_the_host_and_says_both(self) -> None:
        chosen = self.choose()
        assert chosen.engine == "none"
        assert chosen.reason == "docker is not installed; podman is not installed"
        self.engine('case "$1 $2" in "image inspect") echo \'[{"Id": "1"}]\';; esac', "podman")
        chosen = self.choose()
        assert chosen.engine == "podman"
        assert chosen.reason == "docker is not installed; podman answers"

    @pytest.mark.parametrize("name", list(ENGINES))
    def test_an_engine_named_outright_that_is_absent_is_one_error_with_what_to_do(
        self, name: str
    ) -> None:
        said = rf"container: '{name}' cannot be used: {name} is not installed; .*none"
        with pytest.raises(StudyError, match=said):
            self.choose(container=name)

    def test_an_engine_that_does_not_answer_is_said_in_its_own_words(self) -> None:
        said = "Cannot connect to the Docker daemon"
        self.engine(f"echo '{said} at unix:///run/docker.sock.' >&2; exit 1")
        assert self.choose().engine == "none"
        # a record has it: no host, no path
        assert self.choose().reason == "docker does not answer; podman is not installed"
        with pytest.raises(StudyError, match=rf"docker does not answer .*{said}"):
            self.choose(container="docker")

    def test_docker_serves_where_the_base_image_is_there(self) -> None:
        self.engine(
            'case "$*" in version*) echo 1;; \'image inspect python\'*) echo \'[{"Id": "1"}]\';; *) exit 1;; esac'
        )
        chosen = self.choose()
        assert (chosen.engine, chosen.reason) == ("docker", "docker answers")
        kinds = {device: wanted.kind for device, wanted in chosen.images.items()}
        assert kinds == {"cpu": "built", "cuda": "built"}

    def test_an_image_that_cannot_be_had_is_said_and_none_is_pulled(self) -> None:
        pulled = self.bin / "pulled"
        self.engine(
            f'case "$1" in version) echo 1;; pull) echo >{pulled}; exit 1;; *) exit 1;; esac'
        )
        assert (
            "docker: the base_image of images.cpu is not here nor in its registry"
            in self.choose().reason
        )
        assert not pulled.exists()
        with pytest.raises(StudyError, match=r"the base_image of images.cpu is not here .*other:1"):
            self.choose(container="docker", base_image="other:1")
        with pytest.raises(StudyError, match=r"tag may name another one .*docker pull no/such:1"):
            self.choose(container="docker", images={"cpu": "no/such:1"})

    def test_a_tag_that_names_another_image_by_now_makes_new_runs(self) -> None:
        """A digest in its place is what it says, and so is the checksum of an image that no registry knows."""
        identities = []
        for digests, reference in (
            (["site/study@sha256:1"], "site/study:cpu"),
            (["site/study@sha256:2"], "site/study:cpu"),
            (["site/study@sha256:2"], "site/study:newer"),
            ([], "site/study:cpu"),
        ):
            told = json.dumps([{"Id": "9", "RepoDigests": digests}])
            self.engine(
                f"case \"$*\" in version*) echo 1;; 'image inspect'*) echo '{told}';; *) exit 1;; esac"
            )
            identities.append(self.choose(images={"cpu": reference}).images["cpu"].identity)
        assert identities[1] == identities[2]
        assert len(set(identities)) == 3

    def test_a_gpu_that_docker_cannot_give_is_said_before_anything_is_built(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        image = """'image inspect python'*) echo '[{"Id": "1"}]';;"""
        self.engine(
            f"""case "$*" in version*) echo 1;; {image} info*) echo '{{"runc": {{}}}}';; *) exit 1;; esac"""
        )
        monkeypatch.setattr("study.base.devices.absent", lambda device: None)
        reason = (
            "docker cannot give a container the GPU: the NVIDIA Container Toolkit is not installed"
        )
        assert self.choose().reason == f"{reason}; podman is not installed"
        assert self.choose(devices=["cpu"]).engine == "docker"
        self.engine("echo", "nvidia-ctk")
        assert self.choose().engine == "docker"

    def test_an_archive_that_is_not_there_is_one_error(self) -> None:
        with refused("images.cpu", "./cpu.tar"):
            self.choose(images={"cpu": "./cpu.tar"})

    def test_inside_a_container_the_runs_stay_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine("echo 1")
        monkeypatch.setenv("STUDY_CONTAINER", "compose, study:cpu")
        chosen = self.choose()
        assert (chosen.engine, chosen.inside) == ("none", "compose, study:cpu")
        assert "runs inside a container (compose, study:cpu)" in chosen.reason


def test_a_run_has_another_key_in_each_image_and_with_a_limit_but_not_with_a_timeout() -> None:
    def key(
        engine: str, base: str | None = None, inside: str | None = None, **limits: float
    ) -> str:
        selection = Selection(base_image=base)
        devices = engine_choice.DEVICES if engine != "none" else ()
        wanted = {d: request(selection, d) for d in devices}
        where = EngineChoice(engine, "", wanted, inside)
        return plan_at(where, limits=limits).runs[0].key

    keys = [
        key("none"), key("docker"), key("podman"), key("docker", "other:1"), key("none", inside="compose"),
        key("docker", memory_gib=1.0),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert key("docker", timeout_seconds=5.0) == key("docker")


@pytest.mark.parametrize(("key", "value"), [("memory_gib", 1.0), ("cpus", 10_000)])
def test_a_limit_that_cannot_be_kept_is_one_error_before_any_work(key: str, value: float) -> None:
    with refused(f"limits.{key}", value):
        checks.check_limits([tiny_plan(limits={key: value})])


def test_a_host_without_torch_is_one_error_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = r"docker is not installed\), which lacks torch, torchvision; .*make env"
    without = tiny_plan().model_copy(update={"engine_reason": "docker is not installed"})
    with pytest.raises(StudyError, match=said):
        check_training_stack(without)
    check_training_stack(tiny_plan().model_copy(update={"engine": "docker"}))


DIGITS = {"source": "digits", "classes": 10, "images": 20, "image_size": 16}


@pytest.mark.parametrize(
    ("missing", "changes"),
    [
        ("fastai", {"training": {"loop": "fastai", "epochs": 1}, "loader": {"kind": "workers"}}),
        ("sklearn", {"dataset": DIGITS}),
        ("safetensors", {"model": {"name": "resnet18", "weights": "mine.safetensors"}}),
    ],
)
def test_what_a_run_imports_is_asked_for_before_any_work_and_nothing_else(
    missing: str, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    Path("mine.safetensors").touch()
    other, wanting = tiny_plan(), tiny_plan(**changes)
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name: None if name == missing else SimpleNamespace(origin=None),
    )
    monkeypatch.setattr(checks, "ROOT", INSTALLED)
    check_training_stack(other)
    with pytest.raises(
        StudyError, match=rf"which lacks {missing}; .*: pip install 'training-study\[train\]'"
    ):
        check_training_stack(wanting)


def test_one_base_image_is_named_everywhere() -> None:
    base = base_of((ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8"))
    assert "@sha256:" in base
    assert base in (ROOT / "docker/compose.yaml").read_text(encoding="utf-8")
