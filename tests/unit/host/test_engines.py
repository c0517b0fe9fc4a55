"""What each engine's client is asked, and what its answers become: a script in its place writes
down every question."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from study.artifacts.prepared import Image, ImageRequest
from study.base.errors import StudyError
from study.host import supervise
from study.host.engine import base, bring, container, lifetime
from study.host.engine.base import StoredImage
from study.host.engine.container import LAUNCHER
from study.host.engine.docker import PROXIES, Podman
from study.host.engine.engine_choice import ENGINES, engine
from tests.unit.host.test_container import BOX

BUILT = ImageRequest(
    device="cpu", kind="built", reference="study:cpu-1", base_image="base:1", identity="1"
)
REFERENCE = ImageRequest(
    device="cuda", kind="reference", reference="x/study:2", base_image=None, identity="2"
)
ARCHIVE = ImageRequest(
    device="cpu", kind="archive", reference="/a/study.tar", base_image=None, identity="3"
)
KEEP = ("docker", "podman")


class Client:
    """The client of every engine. It answers a question by the first of ``answers`` that begins it,
    else with 1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers: dict[str, str] = {}

    def says(self, answers: dict[str, str]) -> None:
        cases = [
            f"  '{question}'*) cat <<'END'\n{answer}\nEND\n  ;;"
            for question, answer in answers.items()
        ]
        lines = [
            "#!/bin/bash",
            f"echo \"$*\" >>'{self.folder}/asked'",
            'case "$*" in',
            *cases,
            "  *) exit 1;;",
            "esac",
        ]
        for name in ENGINES:
            (self.folder / name).write_text("\n".join(lines) + "\n")
            (self.folder / name).chmod(0o755)

    def asked(self) -> list[str]:
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    made = Client(tmp_path)
    made.says({})
    return made


def described(wanted: ImageRequest, name: str, identity: str) -> Image:
    return Image(
        request=wanted,
        engine=name,
        engine_version="1",
        id=identity,
        digest=None,
        lock_sha256=None,
        python="3",
        libraries={},
        gpu_seen=False,
    )


def test_podman_needs_a_description_of_the_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.host.engine.docker.CDI_FOLDERS", (str(tmp_path),))
    assert "there is no CDI description" in str(Podman().gpu_trouble())
    (tmp_path / "nvidia.yaml").touch()
    assert Podman().gpu_trouble() is None


@pytest.mark.parametrize("name", KEEP)
def test_an_image_is_its_id_its_digest_and_its_labels(name: str, client: Client) -> None:
    values = {"Id": "9", "RepoDigests": ["x/study@sha256:5"], "Config": {"Labels": {"a": "b"}}}
    client.says(
        {"image inspect full": json.dumps([values]), "image inspect bare": '[{"Id": "sha256:9"}]'}
    )
    assert engine(name).image("full") == StoredImage("sha256:9", "sha256:5", {"a": "b"})
    assert engine(name).image("bare") == StoredImage("sha256:9")
    assert engine(name).image("absent") is None


@pytest.mark.parametrize("name", KEEP)
def test_an_image_is_built_loaded_or_pulled(
    name: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in PROXIES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy")
    client.says({"build": "", "load": "Loaded image: study:3", "pull": ""})
    with (tmp_path / "log").open("w") as log:
        assert engine(name).build(BUILT, log) is not None
        inspected, line = client.asked()
        assert inspected == "image inspect study:cpu-1"
        asked = "build --force-rm --network host --target cpu --tag study:cpu-1 --file "
        assert line.startswith(asked)
        assert "--build-arg BASE_IMAGE=base:1 " in line
        assert "--build-arg https_proxy " in line
        assert "secret" not in line
        assert engine(name).bring(ARCHIVE, log) == "study:3"
        assert engine(name).bring(REFERENCE, log) == "x/study:2"
        brought = ["load --input /a/study.tar", "image inspect x/study:2", "pull x/study:2"]
        assert client.asked() == brought
        client.says({"image inspect": '[{"Id": "9"}]', "load": "Loaded image: a\nLoaded image: b"})
        assert engine(name).build(BUILT, log) is None
        assert engine(name).bring(REFERENCE, log) == "x/study:2"
        assert client.asked() == ["image inspect study:cpu-1", "image inspect x/study:2"]
        two = r"'study.tar' holds 2 images; allowed: an archive of one image"
        with pytest.raises(StudyError, match=two):
            engine(name).bring(ARCHIVE, log)
        client.says({})
        failed = r"image cpu: the build failed: no message; .*container=none"
        with pytest.raises(StudyError, match=failed):
            engine(name).build(BUILT, log)


def test_a_machine_that_lacks_the_image_of_a_start_brings_it_and_takes_no_other(
    client: Client, tmp_path: Path
) -> None:
    """It is there after the pull alone, as on a node of a cluster: the client looks for a file that
    the pull writes."""
    docker, there = engine("docker"), tmp_path / "there"
    (tmp_path / "docker").write_text(
        f"#!/bin/bash\necho \"$*\" >>'{tmp_path}/asked'\n"
        f"case \"$*\" in pull*) touch '{there}';; *) test -e '{there}' && echo '[{{\"Id\": "
        '"9"}]\';; esac\n'
    )
    image = described(REFERENCE, "docker", "sha256:9")
    log = io.StringIO()
    bring.bring_here(docker, image, log)
    assert "pull x/study:2" in client.asked()
    bring.bring_here(docker, image, log)
    assert client.asked() == ["image inspect sha256:9"]
    there.unlink()
    said = r"images\.cuda: docker lacks the image .*, and has another one"
    with pytest.raises(StudyError, match=said):
        bring.bring_here(docker, described(REFERENCE, "docker", "sha256:8"), log)


@pytest.mark.parametrize(
    ("crun", "runc", "runtime", "read_only", "note"),
    [
        ("1.26", False, [], True, None),
        ("1.8.1", True, ["--runtime", "runc"], True, "runc is taken"),
        ("1.8.1", False, [], False, "the container's root is writable"),
    ],
)
def test_podman_gives_no_gpu_to_a_read_only_container_of_an_old_crun(
    crun: str,
    runc: bool,
    runtime: list[str],
    read_only: bool,
    note: str | None,
    client: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its CDI file has hooks that write into the root, which such a crun has closed by then."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "podman").write_text(f"#!/bin/sh\necho crun version {crun}\n")
    if runc:
        (tmp_path / "runc").touch(mode=0o755)
    with_gpu = Podman().argv(replace(BOX, gpus=()))
    assert with_gpu[1 : 1 + len(runtime)] == runtime
    assert ("--read-only" in with_gpu) == read_only
    assert (note or "") in str(Podman().gpu_note())
    without = Podman().argv(replace(BOX, gpus=None))
    assert "--read-only" in without
    assert "--runtime" not in without


@pytest.mark.parametrize("name", KEEP)
def test_containers_of_killed_launchers_are_removed_and_those_at_work_are_named(
    name: str, client: Client
) -> None:
    """A launcher is known by its number and its start; of one in another namespace nothing can be
    told."""
    own = base.launcher_label()
    namespace, number, start = own.split(".")
    labels = {
        "own": own,
        "ended": own,
        "recycled": f"{namespace}.{number}.{int(start) - 1}",  # another process got the number
        "gone": f"{namespace}.{2**22 + 1}.{start}",
        "broken": f"{namespace}..",
        "elsewhere": f"{namespace}7.{number}.{start}",
        "restarted": f"00000000{namespace[8:]}.{number}.{start}",  # before the machine was started
    }
    there = "\n".join([*labels, "lost"])
    answers = {f"ps --all --quiet --filter label={LAUNCHER}": there, "rm": ""}
    for one, label in labels.items():
        values = {
            "Name": f"/{one}",
            "Config": {"Labels": {LAUNCHER: label}},
            "State": {"Running": one != "ended"},
        }
        answers[f"container inspect {one}"] = json.dumps([values])
    client.says(answers)
    assert lifetime.remove_orphans(engine(name)) == ["own", "elsewhere"]
    removed = [line for line in client.asked() if line.startswith("rm")]
    orphans = ("recycled", "gone", "broken", "restarted")
    assert removed == [f"rm --force --volumes {one}" for one in orphans]


@pytest.mark.parametrize("name", list(ENGINES))
def test_a_container_runs_to_its_end_and_leaves_its_last_lines(
    name: str, client: Client, tmp_path: Path
) -> None:
    """The client writes the id as docker's does, and ends with a code that only the engine's state
    corrects."""
    state = {"StartedAt": "2026", "ExitCode": 3, "OOMKilled": True}
    values = {"Name": "/x", "Config": {}, "State": state}
    starts = f"""#!/bin/bash
echo "$*" >>'{tmp_path}/asked'
case "$*" in
  run*) while [ "$1" != --cidfile ]; do shift; done; echo 77 >"$2"; echo said; exit 5;;
  *exec*) echo said; exit 5;;
  'container inspect 77') echo '{json.dumps([values])}';;
  *) echo 1;;
esac
"""
    (tmp_path / name).write_text(starts)
    at = type(engine(name))()
    with (
        lifetime.scratch_folder(tmp_path / "results") as scratch,
        (tmp_path / "log").open("w") as log,
    ):
        ended = lifetime.enter(at, "image", ["true"], scratch, [], log, "a test")
    assert ended.tail == ["said"]
    assert (ended.code, ended.oom_killed) == ((3, True) if name in KEEP else (5, False))
    assert ended.trouble is None
    assert ("rm --force --volumes 77" in client.asked()) == (name in KEEP)


FILLS = """#!/bin/bash
case "$*" in
  run*) echo c1 >'{made}'; head --bytes {written} /dev/zero >'{scratch}/big'; {then}; echo said;;
  *inspect*) echo '[{{"Name": "/x", "Config": {{}}, "State": {{"StartedAt": "2026", "ExitCode": 0}}}}]';;
  *) echo 1;;
esac
"""
MIB = 2**20


@pytest.mark.parametrize(
    ("written", "free_later", "is_ended"),
    [(5 * MIB, 8 * MIB, True), (0, 1 * MIB, True), (1 * MIB, 7 * MIB, False)],
    ids=["by what it wrote", "by what else fills the disk", "not at all"],
)
def test_a_container_is_ended_at_half_of_the_free_disk_or_when_hardly_any_is_left(
    written: int,
    free_later: int,
    is_ended: bool,
    tmp_path: Path,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The disk has 8 MiB at the start: the folder may hold 4 MiB, and 2 MiB must stay free."""
    monkeypatch.setattr(supervise, "LOOK_SECONDS", 0.05)
    asked: list[Path] = []

    def usage(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(free=8 * MIB if len(asked) == 1 else free_later)

    with (
        lifetime.scratch_folder(tmp_path / "results") as scratch,
        (tmp_path / "log").open("w") as log,
    ):
        monkeypatch.setattr(shutil, "disk_usage", usage)
        then = "exec sleep 1000" if is_ended else "sleep 0.5"
        fills = FILLS.format(
            written=written, scratch=scratch, then=then, made=container.id_file(scratch)
        )
        (tmp_path / "docker").write_text(fills)
        (tmp_path / "docker").chmod(0o755)
        ended = lifetime.enter(engine("docker"), "image", ["true"], scratch, [], log, "a test")
    assert set(asked) == {scratch}
    if is_ended:
        said = "it wrote more than 0.00391 GiB, half of the disk's free space, or the disk"
        assert str(ended.trouble).startswith(said)
    else:
        assert (ended.code, ended.trouble, ended.tail) == (0, None, ["said"])
