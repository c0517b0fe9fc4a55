"""Runs inside a real Docker engine, as a user starts them. The tests of a class build on each
other."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from study.artifacts.layout import Results
from study.artifacts.prepared import Image
from study.artifacts.record import Record
from study.base.errors import StudyError
from study.base.files import ROOT, file_sha256
from study.base.fork_server import FORK_SERVERS
from study.config.settings import Settings
from study.host.engine import base, container, lifetime
from study.host.engine.container import code_mount
from study.host.engine.docker import Docker
from study.training.models.build import backbone
from tests.conftest import MNIST_CNN, TRANSFER, UNWATCHED, write_mnist, write_photos
from tests.containers.conftest import Built, left_over, scratch_folders
from tests.waiting import at_work, wait_for
from tests.workflow.conftest import OWN_MODEL, RECORDS, Checkout, copy_checkout

# They share an engine, in which one container of a run's name may be; and the first of them builds
# the images.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.xdist_group("containers"),
    pytest.mark.timeout(1800),
]

DOCKER = Docker()
FAST = "overrides={training.batch_size: [4], curve: null}"
BOTH = "overrides={training.batch_size: [4, 8], curve: null}"
REDUCED = {"replicates": 1, "training.epochs": 1, "training.batch_size": [4, 8]}
REDUCED |= {"dataset.images": 40, "dataset.image_size": 40}
REDUCED |= {f"evidence.{key}": value for key, value in UNWATCHED.items()}
QUICKSTART = ("studies=[quickstart]", f"overrides={json.dumps(REDUCED)}")
"""Quickstart in two short runs. What the tests beside it do makes none of them start again."""


def only(checkout: Checkout, study: str = "tiny") -> Record:
    (record,) = checkout.measured(study).values()
    return record


def records_of(
    built: Built, checkout: Checkout, studies: dict[str, dict[str, Any]]
) -> dict[str, Record]:
    """The record of the one run of each study, which are written for one start."""
    for name, changes in studies.items():
        checkout.study(name, **({"factors": {}, "curve": None} | changes))
    checkout.good(f"studies=[{','.join(studies)}]", *built.selection, extra=RECORDS)
    return {name: only(checkout, name) for name in studies}


def inside(
    built: Built, folder: Path, code: str, device: str = "cpu", gpus: bool = False
) -> tuple[int, str]:
    """What a line of Python says in a container that is started as a run's is."""
    image = built.cpu if device == "cpu" else built.cuda
    with (
        lifetime.scratch_folder(folder) as scratch,
        (folder / "log").open("w", encoding="utf-8") as log,
    ):
        command = ["python", "-c", code]
        how: dict[str, Any] = {
            "settings": Settings.model_validate({"device": device}),
            "gpus": gpus,
        }
        shown = [code_mount()]
        ended = lifetime.enter(DOCKER, image.id, command, scratch, shown, log, "a test", **how)
    return ended.code, "\n".join(ended.tail)


class TestTheImages:
    def test_both_targets_hold_the_same_bytes_of_the_present_lock_and_say_what_they_are(
        self, built: Built
    ) -> None:
        cpu, cuda = (DOCKER.inspect("image", image.id) for image in (built.cpu, built.cuda))
        assert cpu["RootFS"]["Layers"] == cuda["RootFS"]["Layers"]
        assert cuda["Config"]["User"] == "65532:65532"
        labels = {f"org.opencontainers.image.{key}" for key in ("version", "revision", "licenses")}
        assert labels <= set(cuda["Config"]["Labels"])
        assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in cuda["Config"]["Env"]
        assert not any(item.startswith("NVIDIA") for item in cpu["Config"]["Env"])
        for image in (built.cpu, built.cuda):
            assert image.lock_sha256 == file_sha256(ROOT / "requirements.lock")
            assert image.libraries["torch"].startswith("2.")
            assert (image.engine, image.request.kind) == ("docker", "built")
            assert image.request.base_image == built.base

    def test_a_gpu_that_docker_cannot_give_is_one_clear_error(
        self, built: Built, tmp_path: Path
    ) -> None:
        said = r"docker did not start the container: .*(device driver|nvidia|CDI)"
        with pytest.raises(StudyError, match=said):
            inside(built, tmp_path, "pass", "cuda", gpus=True)
        assert left_over() == []


LOOKS = """
import json, os
written = []
for path in PATHS:
    try:
        open(path, "w")
        written.append(path)
    except OSError as error:
        assert error.errno in (13, 30), error
status = [line.split() for line in open("/proc/self/status")]
memory = os.statvfs("/dev/shm")
print(json.dumps({
    "networks": os.listdir("/sys/class/net"),
    "user": [os.getuid(), os.getgid()],
    "written": written,
    "capabilities": [words[1] for words in status if words[0][:3] == "Cap"],
    "privileges": [words[1] for words in status if words[0] == "NoNewPrivs:"],
    "shared memory": memory.f_blocks * memory.f_frsize,
}))
"""
"""What is there for code inside a container."""


@pytest.mark.gate
def test_inside_there_is_no_network_no_capability_no_writable_root_and_no_root_user(
    built: Built, tmp_path: Path
) -> None:
    """The code is read-only, too, and shared memory is larger than the engine's default."""
    paths = ["/x", f"{container.WORK}/x", f"{container.WORK}/study/x"]
    paths += ["/opt/venv/x", "/tmp/x", "/scratch/x"]
    user = container.user_inside(os.getuid(), os.getgid())
    assert 0 not in user
    code, said = inside(built, tmp_path, LOOKS.replace("PATHS", str(paths)))
    assert code == 0, said
    assert json.loads(said) == {
        "networks": ["lo"],
        "user": list(user),
        "written": ["/tmp/x", "/scratch/x"],
        "capabilities": ["0" * 16] * 5,
        "privileges": ["1"],
        "shared memory": 2**30,
    }


JOB = """
test "$(ls /sys/class/net)" = lo && test "$(ls | tr '\\n' ' ')" = "job.sh numbers " || exit 3
echo 2 > numbers/one && exit 4
sleep 1; echo ready; sleep 1; echo "lo=$(cat numbers/one) took 3"
"""
"""A program that ends well only where all is as it shall be."""


class TestAStudyInContainers:
    @pytest.mark.gate
    def test_quickstart_runs_on_both_devices_and_a_missing_gpu_is_unavailable(
        self, built: Built, contained: Checkout
    ) -> None:
        said = contained.good(*QUICKSTART, *built.selection)
        assert "runs execute in containers of docker (asked for)" in said
        records = contained.measured("quickstart").values()
        assert [record.outcome for record in records] == ["ok", "ok"]
        for record in records:
            assert (record.software.engine, record.software.image) == ("docker", built.cpu.id)
            assert record.software.engine_version == built.cpu.engine_version
            assert record.machine is not None
            assert record.machine.python == built.cpu.python
        assert built.cpu.id.removeprefix("sha256:")[:12] in contained.page()
        assert "<dt>unavailable</dt>" in contained.page()
        written = (contained.root / "results").rglob("*")
        assert {path.stat().st_uid for path in written} == {os.getuid()}
        assert (left_over(), scratch_folders(contained.root)) == ([], [])

    @pytest.mark.gate
    def test_a_command_finds_its_own_files_data_it_cannot_change_and_no_network(
        self, built: Built, contained: Checkout
    ) -> None:
        (contained.root / "numbers").mkdir()
        (contained.root / "numbers" / "one").write_text("1")
        (contained.root / "job.sh").write_text(JOB)
        command = {"line": "sh job.sh {seed}", "data": ["numbers"]}
        plain = {"title": "t", "question": "q?", "replicates": 1, "command": command}
        output = {"output": {"seconds": "took ([0-9]+)", "starts": "^ready", "loss": "lo=([0-9]+)"}}
        study = json.dumps(plain | output | {"image": built.cpu.id})
        (contained.root / "config" / "studies" / "job.yaml").write_text(study)
        contained.good("studies=[job]", *built.selection, extra=RECORDS)
        record = only(contained, "job")
        assert (record.outcome, record.message) == ("ok", None)
        assert record.command and record.command.marked_seconds
        assert record.command.printed == {"seconds": [3], "loss": [1]}
        assert 1 < record.command.marked_seconds < record.command.seconds
        assert (left_over(), scratch_folders(contained.root)) == ([], [])

    def test_odd_folders_own_models_workers_and_ranks_serve_inside(
        self, built: Built, contained: Checkout
    ) -> None:
        """Three studies of one run in one start. The ranks of two nodes find each other without a
        network."""
        beside = contained.root.parent
        photos = write_photos(beside / 'my, "photos": d\'été', {"oiseau é": 12, "森 's": 12})
        weights, given = beside / "my, weights: 1.pt", beside / "given, mnist"
        torch.save(backbone("resnet18", 7).state_dict(), weights)
        write_mnist(given)
        body = "nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, classes))"
        code = f"from torch import nn\ndef mine(classes): return {body}\n"
        (contained.root / "nets.py").write_text(code)
        training = {"freeze_epochs": 0, "epochs": 1, "batch_size": 4}
        studies: dict[str, dict[str, Any]] = {
            "own": TRANSFER
            | {
                "dataset": {"source": "folder", "path": str(photos), "image_size": 40},
                "model": {"name": "resnet18", "weights": str(weights)},
            },
            "digits": {
                "dataset": {"source": "mnist", "path": str(given), "channels": 1, "image_size": 28},
                "model": MNIST_CNN,
            },
            "nodes": {
                "model": {"name": "nets:mine", "weights": "none"},
                "training": training | {"strategy": "ddp_two_nodes"},
                "loader": {"kind": "workers", "workers": 2},
            },
        }
        made = records_of(built, contained, studies)
        ends = {name: (record.outcome, record.message) for name, record in made.items()}
        assert ends == dict.fromkeys(studies, ("ok", None))
        own, nodes = made["own"], made["nodes"]
        assert own.settings.dataset.path == photos.name
        assert own.weights and own.measurement
        assert (own.weights.kind, own.weights.file) == ("file", weights.name)
        assert own.measurement.body_sha256 == own.weights.body_sha256
        unpacked = contained.root / "results" / "data" / "unpacked"
        assert {path.stat().st_uid for path in unpacked.rglob("*")} == {os.getuid()}
        assert nodes.measurement
        assert nodes.measurement.parameters == 2 * (3 * 32 * 32 + 1)
        assert len(nodes.measurement.replicas) == 2


class TestTheImageRule:
    """With a Dockerfile of one line, so that a build takes a second."""

    @pytest.fixture(autouse=True, scope="class")
    def _short(self, built: Built, contained: Checkout) -> None:
        for part in ("cpu", "gpu"):
            base.ask("docker", "tag", built.cpu.id, f"study-test:{part}")
        text = (
            "ARG BASE_IMAGE=study-test:cpu\nFROM ${BASE_IMAGE} AS cpu\nFROM ${BASE_IMAGE} AS gpu\n"
        )
        (contained.root / "docker" / "Dockerfile").write_text(text, encoding="utf-8")
        # The worker's fork servers would build from the file in their own checkout.
        contained.variables = contained.variables | {FORK_SERVERS: ""}

    def test_auto_builds_where_the_base_is_there(self, contained: Checkout) -> None:
        said = contained.good("container=auto", FAST, extra=RECORDS)
        assert "runs execute in containers of docker (docker answers)" in said
        assert "image cpu: sha256:" in said
        assert only(contained).software.engine == "docker"

    def test_a_changed_dockerfile_is_measured_anew_and_a_removed_image_made_again(
        self, contained: Checkout
    ) -> None:
        path = contained.root / "results/images/cpu.json"
        dockerfile = contained.root / "docker/Dockerfile"
        text, before = dockerfile.read_text(encoding="utf-8"), contained.records()
        labelled = text.replace("AS cpu\n", "AS cpu\nLABEL planted=1\n")
        dockerfile.write_text(labelled, encoding="utf-8")
        contained.good("container=auto", FAST, extra=RECORDS)
        image, records = json.loads(path.read_text()), contained.records()
        assert before.items() < records.items()
        base.ask("docker", "rmi", "--force", image["id"])
        contained.good("container=auto", BOTH, extra=RECORDS)
        assert records.items() < contained.records().items()
        assert json.loads(path.read_text())["request"] == image["request"]

    def test_a_prebuilt_image_that_cannot_run_the_code_is_one_line(
        self, built: Built, contained: Checkout
    ) -> None:
        done = contained.snakemake("container=docker", f"images={{cpu: {built.base}}}", FAST)
        assert done.returncode == 1
        (error,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        assert "images.cpu" in error


PLANTED = """
planted = Path(study.__file__).parent / "planted"
told = planted.read_text() if planted.exists() else ""
if told == "by size":
    told = {4: "hog", 5: "segv", 6: "hang"}.get(len(images), "")
if told == "hang":
    print("hanging", flush=True)
    time.sleep(3600)
if told == "hog":
    hog = [bytearray(b"x" * 2**26) for _ in range(64)]
if told == "segv":
    os.kill(os.getpid(), signal.SIGSEGV)
"""
"""What each test wants is told in a file of the package's folder, which is seen inside and is in no
run's key."""


HOSTILE = """
import os, socket, sys, torch

def reached():
    found = [name for name in os.listdir("/sys/class/net") if name != "lo"]
    for place in (("127.0.0.1", PORT), ("1.1.1.1", 443)):
        try:
            socket.create_connection(place, 2).close()
            found.append(str(place))
        except OSError:
            pass
    for path in ("SECRET", "RESULTS/tiny/records", "/var/run/docker.sock"):
        if os.path.exists(path):
            found.append(path)
    return found

def planted():
    results = "/scratch/results"
    if os.path.isdir(results):  # while the model is tried
        for folder in ("weights", "tiny/records", "tiny/weights"):
            os.makedirs(f"{results}/{folder}", exist_ok=True)
        for link in ("weights/secret", "tiny/weights/secret.json"):
            if not os.path.lexists(f"{results}/{link}"):  # a trial builds the model once for each kind of run
                os.symlink("SECRET", f"{results}/{link}")
        for name in ("tiny/records/RECORD", "report.html", "plan.json"):
            with open(f"{results}/{name}", "w") as file:
                file.write("planted")

class Net(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.head = torch.nn.Linear(3 * 32 * 32, classes)
        planted()
        if found := reached():
            raise RuntimeError(f"reached {found}")

    def forward(self, images):
        if len(images) == 8 and self.training and "study.training.trial" not in sys.modules:
            for name in ("result.json", "telemetry.csv", "times"):
                if os.path.lexists(f"/scratch/{name}"):
                    os.unlink(f"/scratch/{name}")
                os.symlink("SECRET", f"/scratch/{name}")
            os._exit(0)
        return self.head(images.flatten(1))
"""
"""A model that looks for a way out wherever its code runs, and plants links and records for the
host."""


class TestHostileCode:
    @pytest.mark.parametrize(
        "caller", ["contained", "anothers"], ids=["the user of the tests", "another user"]
    )
    def test_a_users_model_reaches_no_network_and_changes_nothing_of_the_host(
        self, caller: str, built: Built, request: pytest.FixtureRequest
    ) -> None:
        contained: Checkout = request.getfixturevalue(caller)
        root = contained.root
        secret = root.parent / "secret"
        secret.write_text("secret")
        secret.chmod(0o600)
        owner = root.stat()
        os.chown(secret, owner.st_uid, owner.st_gid)
        contained.plant("pass")
        contained.study("tiny", model=OWN_MODEL)
        contained.good(*built.selection, FAST, extra=RECORDS)
        before = contained.records()
        (record,) = before
        with socket.create_server(("127.0.0.1", 0)) as listening:
            code = HOSTILE.replace("PORT", str(listening.getsockname()[1]))
            code = code.replace("RECORD", record).replace("RESULTS", f"{container.WORK}/results")
            code = code.replace("SECRET", str(secret))
            (root / "nets.py").write_text(code, encoding="utf-8")
            contained.good(*built.selection, BOTH)
            listening.settimeout(0)
            with pytest.raises(BlockingIOError):
                listening.accept()
        after = contained.records()
        assert before.items() < after.items()
        new = {one.run: one for name, one in contained.measured().items() if name not in before}
        assert new["bs4-cpu-r1"].outcome == "ok", new["bs4-cpu-r1"].message
        assert (new["bs8-cpu-r1"].outcome, new["bs8-cpu-r1"].telemetry_sha256) == ("failed", None)
        assert "left no result" in str(new["bs8-cpu-r1"].message)
        # the hostile model was tried, too
        assert len(list((root / "results/tiny/weights").iterdir())) == 2
        assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("secret", 0o600)
        assert not [path for path in (root / "results").rglob("*") if path.is_symlink()]
        assert "planted" not in (root / "results" / "plan.json").read_text()
        assert "secret" not in "".join(content.decode() for content in after.values())
        assert {path.stat().st_uid for path in (root / "results").rglob("*")} == {owner.st_uid}
        assert "</html>" in contained.page()


def plant(checkout: Checkout, what: str) -> None:
    """Write what the next run is to do."""
    (checkout.root / "study" / "planted").write_text(what)


class TestEnds:
    """However a run ends: a record or a clear error, no container left after the next start,
    nothing lost."""

    @pytest.fixture(autouse=True, scope="class")
    def _planted(self, built: Built, contained: Checkout) -> None:
        contained.plant(PLANTED)
        contained.study("tiny", model=OWN_MODEL)
        contained.good(*built.selection, FAST, extra=RECORDS)

    @pytest.fixture(autouse=True)
    def _planted_for_one_test(self, contained: Checkout) -> Iterator[None]:
        yield
        (contained.root / "study" / "planted").unlink(missing_ok=True)

    @contextmanager
    def hanging(
        self, built: Built, checkout: Checkout, level: int
    ) -> "Iterator[subprocess.Popen[bytes]]":
        """A start whose container hangs, until something is done to it; then its end is waited
        for."""
        plant(checkout, "hang")
        with checkout.started(*built.selection, self.levels(level), extra=RECORDS) as process:
            wait_for(lambda: _hangs(checkout, level) or process.poll() is not None, 240)
            assert process.poll() is None, checkout.said()
            yield process
            process.wait(120)
            wait_for(lambda: not at_work(checkout.root), 60)
        plant(checkout, "")

    @staticmethod
    def levels(*sizes: int) -> str:
        return f"overrides={{training.batch_size: {list(sizes)}, curve: null}}"

    def finished(self, built: Built, checkout: Checkout, level: int) -> Record:
        """The next start: nothing is left, nothing is lost, and the interrupted run has its
        record."""
        before = checkout.records()
        checkout.good(*built.selection, self.levels(level), extra=RECORDS)
        assert left_over() == []
        assert scratch_folders(checkout.root) == []
        assert before.items() <= checkout.records().items()
        return next(one for one in checkout.measured().values() if one.run == f"bs{level}-cpu-r1")

    @pytest.mark.parametrize(
        ("level", "killed"), [(5, "Snakemake"), (7, "launcher and client"), (10, "Ctrl-C")]
    )
    def test_whoever_is_killed_the_container_ends_and_the_next_start_measures_its_run(
        self, built: Built, contained: Checkout, level: int, killed: str
    ) -> None:
        """Where nobody is left to tell it, the container goes on until the next start ends it."""
        with self.hanging(built, contained, level) as process:
            if killed == "Snakemake":
                process.kill()
            elif killed == "Ctrl-C":
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            else:
                client = _client()
                client.send_signal(signal.SIGSTOP)  # it hears nothing of its launcher's death
                _launcher(contained).kill()
                client.kill()
        if killed != "launcher and client":
            wait_for(lambda: left_over() == [], 60)  # nothing measures on unseen
        assert self.finished(built, contained, level).outcome == "ok"

    @pytest.mark.parametrize(
        ("level", "command", "message"),
        [
            (8, [], "the client of docker ended (SIGKILL) before its container, which was stopped"),
            (9, ["kill"], "the process was ended by SIGKILL"),
            (13, ["rm", "--force"], "the container was removed from outside"),
        ],
    )
    def test_a_client_that_is_killed_and_a_container_that_is_killed_or_removed_are_failures_of_their_run(
        self, built: Built, contained: Checkout, level: int, command: list[str], message: str
    ) -> None:
        with self.hanging(built, contained, level) as process:
            if command:
                base.ask("docker", *command, container.NAME)
            else:
                _client().kill()
        assert process.returncode == 0
        assert left_over() == []
        record = self.finished(built, contained, level)
        assert (record.outcome, record.message) == ("failed", message)

    def test_limits_are_kept_and_a_segmentation_fault_has_its_signal(
        self, built: Built, contained: Checkout
    ) -> None:
        limits: dict[str, tuple[int, dict[str, Any]]] = {
            "small": (4, {"memory_gib": 1.0}),
            "faulty": (5, {}),
            "slow": (6, {"timeout_seconds": 8}),
            "one-cpu": (7, {"cpus": 1}),
        }
        plant(contained, "by size")
        studies = {
            name: {
                "model": OWN_MODEL,
                "limits": own,
                "training": {"freeze_epochs": 0, "epochs": 1, "batch_size": size},
            }
            for name, (size, own) in limits.items()
        }
        made = records_of(built, contained, studies)
        assert {name: record.outcome for name, record in made.items()} == {
            "small": "out_of_memory", "faulty": "failed", "slow": "failed", "one-cpu": "ok",
        }  # fmt: skip
        assert "at its limit of 1 GiB" in str(made["small"].message)
        assert made["small"].settings.limits.memory_gib == 1.0
        assert made["faulty"].message == "the process was ended by SIGSEGV"
        assert made["slow"].message == "timed out after 8 s (limits.timeout_seconds)"
        measured = made["one-cpu"].measurement
        assert measured and measured.threads == 1
        assert (left_over(), scratch_folders(contained.root)) == ([], [])


def _hangs(checkout: Checkout, level: int) -> bool:
    return any(
        "hanging" in log.read_text()
        for log in checkout.root.glob(f"results/logs/tiny/bs{level}-cpu-r1.*.log")
    )


def _launcher(checkout: Checkout) -> psutil.Process:
    """The process of the checkout that launches the runs of a block."""
    return next(
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if process.info["cwd"] == str(checkout.root)
        and (process.info["cmdline"] or [])[1:4] == ["-m", "study", "measure"]
    )


def _client() -> psutil.Process:
    """The docker client of the container that measures."""
    return next(
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [])[:4] == ["docker", "run", "--name", container.NAME]
    )


def test_compose_runs_the_pipeline_in_one_image_for_the_checkouts_owner(
    built: Built, tmp_path: Path
) -> None:
    checkout = copy_checkout(tmp_path / "a copy")
    compose = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
    base.ask("docker", "tag", built.cpu.id, "study:cpu")
    if os.getuid() == 0:  # the checkout of a user who is not root
        for path in [checkout.root, *checkout.root.rglob("*")]:
            os.chown(path, 1234, 1234)
    owner = checkout.root.stat().st_uid
    pipeline = ["python", "-m", "snakemake", "--cores", "1", "--config", "studies=[tiny]", FAST]
    done = checkout.run([*compose, "-f", "docker/compose.yaml", "run", "--rm", "cpu", *pipeline])
    assert done.returncode == 0, done.stdout + done.stderr
    record = only(checkout)
    assert record.outcome == "ok"
    assert "inside a container (compose, study:cpu)" in record.software.engine_reason
    assert {path.stat().st_uid for path in (checkout.root / "results").rglob("*")} == {owner}
    assert checkout.page()


OLDER = ("certifi==2025.1.31", "ca78db4565a652026a4db2bcdf68f2fb589ea80d0be70e03929ed730746b84fe")
"""A package that no training needs, in another version, with the checksum of its wheel."""


class TestTwoVersionsOfTheSoftware:
    def test_two_locks_are_built_run_in_the_same_blocks_and_compared(
        self, built: Built, contained: Checkout
    ) -> None:
        # On an image that holds every package already a build installs the one that differs.
        text = f"FROM {built.cpu.request.reference}\nUSER root\n"
        build = ["docker", "build", "--tag", "study-test:root", "-"]
        subprocess.run(build, input=text, text=True, check=True)
        locks = contained.root / "locks"
        locks.mkdir()
        current = (contained.root / "requirements.lock").read_text(encoding="utf-8")
        (locks / "new.lock").write_text(current, encoding="utf-8")
        line = f"{OLDER[0]} --hash=sha256:{OLDER[1]}\n"
        older = re.sub(r"^certifi==[\s\S]*?(?=^\w)", line, current, flags=re.MULTILINE)
        (locks / "old.lock").write_text(older, encoding="utf-8")
        factors = {"image": ["locks/old.lock", "locks/new.lock"]}
        contained.study("versions", factors=factors, contrast="image", curve=None, replicates=3)
        config = ("studies=[versions]", "container=docker", "base_image=study-test:root")
        assert "versions on cpu: 6 runs pending in 3 blocks" in contained.good(*config)
        records = contained.measured("versions").values()
        assert {record.outcome for record in records} == {"ok"}
        images = {(record.settings.image, record.software.image) for record in records}
        assert len(images) == len({image for _, image in images}) == 2
        order = sorted(records, key=lambda record: record.started)
        assert [record.block for record in order] == [1, 1, 2, 2, 3, 3]
        found = (contained.root / "results/images").glob("cpu-????????.json")
        described = [Image.read(path) for path in found]
        assert len({image.lock_sha256 for image in described}) == 2
        asks = "import importlib.metadata as m; print(m.version('certifi'))"
        python = ["docker", "run", "--rm", "--entrypoint=python"]
        held = {base.ask(*python, image.id, "-c", asks).strip() for image in described}
        (newer,) = re.findall(r"^certifi==([\w.]+)", current, re.MULTILINE)
        assert held == {OLDER[0].partition("==")[2], newer}
        path = Results(contained.root / "results").fit("versions")
        fit = json.loads(path.read_text(encoding="utf-8"))
        (contrast,) = [answer for answer in fit["answers"] if answer.get("contrast") == "image"]
        assert (contrast["slower"], contrast["faster"]) == ("old.lock", "new.lock")
        assert "old.lock" in contained.page()
        assert "used different images" not in contained.page()
        assert "nothing is left to do" in contained.good(*config)
