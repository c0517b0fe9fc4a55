"""Small studies, small images, and a copy of the checkout to run Snakemake in."""

import atexit
import gzip
import os
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

# What a test trains on a CPU must not see a GPU, as container.environment has it: fastai asks for
# the machine's best.
# STUDY_TEST_GPU=1 is for tests/gpu alone, by themselves.
if not os.environ.get("STUDY_TEST_GPU"):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
# Training processes of two workers share two cores: a thread that spins while it waits takes the
# other's core, and a pipeline took twice as long for it. Read before torch or numpy is imported,
# and by every process of a test.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# No test waits for the measurement of another worker, nor for one of this machine's user.
os.environ["STUDY_MACHINE"] = f"test {os.getpid()}"
# The reference workload takes seconds of each run; a test of it takes this away.
os.environ["STUDY_INSTRUMENTS"] = "off"

import numpy as np
import pytest
from PIL import Image

from study.artifacts.plan import Plan
from study.base.files import PACKAGE
from study.config.study import Evidence, Study
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan


def plant_package(folder: Path, name: str, version: str, *asks_for: str) -> None:
    """Let a package count as installed where ``folder`` is searched, in this version."""
    place = folder / f"{name.replace('-', '_')}-0.dist-info"
    place.mkdir(exist_ok=True)
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {one}" for one in asks_for),
    ]
    (place / "METADATA").write_text(
        "\n".join([*lines, "", "Requires-Dist: words of a description"])
    )


class NoTraining(MetaPathFinder):
    """Refuses what only the training side may import, whether it is installed or not."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> None:
        """Raise ``ImportError`` for torch, torchvision and fastai."""
        if name.partition(".")[0] in ("torch", "torchvision", "fastai"):
            raise ImportError(
                f"{name} belongs to the training side, and its tests to tests/unit/training"
            )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``make test`` and ``make test-all``."""
    parser.addoption(
        "--without-torch", action="store_true", help="fail every test that imports torch or fastai"
    )
    parser.addoption(
        "--thorough", action="store_true", help="simulate with many seeds, not with a few"
    )


class Amount:
    """How many times a test repeats what chance decides. Its bounds hold for both numbers."""

    thorough = False


def repeats(few: int, many: int) -> range:
    """The seeds of a simulation: ``few`` in `make test`, ``many`` in `make test-all`."""
    return range(many if Amount.thorough else few)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse torch before any test module is imported, in each worker, too."""
    Amount.thorough = config.getoption("--thorough")
    if config.getoption("--without-torch"):
        sys.meta_path.insert(0, NoTraining())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that take longest first: at the end, no worker waits for another one's."""
    items.sort(key=lambda item: "workflow" not in item.path.parts)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop if tests that belong to one group would run on several workers, as a new pytest once did
    in silence."""
    grouped = [item for item in session.items if item.get_closest_marker("xdist_group")]
    if session.config.getoption("loadgroup", False) and not all(
        "@" in item.nodeid for item in grouped
    ):
        pytest.exit(
            "this pytest-xdist does not keep the groups of tests together with this pytest",
            returncode=4,
        )


ROOT = Path(__file__).parent.parent
SESSION = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
SHARED = Path(tempfile.gettempdir()) / f"study-tests-{SESSION}"
"""A folder that the workers of a session share; the process that started them removes it."""
if os.getpid() == SESSION:
    atexit.register(shutil.rmtree, SHARED, ignore_errors=True)
SLURM_PLUGIN = Path(sys.prefix) / "slurm"
"""Where `make dev` puts SLURM's executor: each start of Snakemake imports those that it finds, and
this one is slow."""
HERE: dict[str, str | None] = {"cpu": None, "cuda": "no GPU in this test"}


TRANSFER: dict[str, Any] = {
    "dataset": {"source": "generated", "images": 20, "image_size": 40},
    "model": {"name": "resnet18", "weights": "none"},
    "training": {"loop": "torch", "freeze_epochs": 1, "epochs": 1, "batch_size": 4},
}
"""What to change where transfer is the subject: torchvision's body with a new head, frozen for an
epoch."""


SMALL_NET = {"name": "replications.gpu_lab.networks:small_net", "weights": "none"}
"""The model of most tests: a convolution and two dense layers, for colour images of 32 x 32
pixels."""
MNIST_CNN = {"name": "replications.mnist_report.networks:mnist_cnn", "weights": "none"}
"""One for grey images of 28 x 28 pixels."""


UNWATCHED: dict[str, Any] = dict.fromkeys(Evidence.model_fields)
"""No limit of what others do: a run beside other tests is measured once, as on a machine of its
own."""


def study_values(**changes: Any) -> dict[str, Any]:
    """A study that takes seconds; ``changes`` replace top-level keys."""
    values: dict[str, Any] = {
        "title": "Tiny",
        "question": "Does the pipeline work?",
        "dataset": {"source": "generated", "images": 20, "image_size": 32},
        "model": SMALL_NET,
        "training": {"loop": "torch", "freeze_epochs": 0, "epochs": 1, "batch_size": 4},
        "loader": {"kind": "device"},
        "factors": {"device": ["cpu"], "training.batch_size": [4, 8]},
        "replicates": 1,
        "curve": {"x": "training.batch_size", "y": "fit_seconds"},
        "evidence": UNWATCHED,
    }
    return values | changes


def plan_at(
    choice: EngineChoice,
    absent: dict[str, str | None] | None = None,
    counts: dict[str, int] | None = None,
    **changes: Any,
) -> Plan:
    """The plan of a tiny study on a machine without a GPU, or one that lacks what ``absent`` says,
    and has so many of the others."""
    return make_plan(
        "tiny", Study.model_validate(study_values(**changes)), choice, absent or HERE, counts
    )


def tiny_plan(**changes: Any) -> Plan:
    """The plan of a tiny study on a host without a GPU."""
    return plan_at(EngineChoice("none", "asked for"), **changes)


class PlantedClock:
    """The time of ``time.perf_counter``, which passes where a test says so and nowhere else."""

    def __init__(self) -> None:
        self.now = 0.0

    def pass_by(self, seconds: float) -> None:
        """Let the time pass."""
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PlantedClock:
    """A clock in the place of the machine's, so that no measured second depends on how busy that
    is."""
    planted = PlantedClock()
    monkeypatch.setattr(time, "perf_counter", lambda: planted.now)
    return planted


def write_photos(folder: Path, classes: dict[str, int], size: tuple[int, int] = (60, 40)) -> Path:
    """A folder with so many small photographs a class."""
    rng = np.random.default_rng(0)
    for number, (name, count) in enumerate(classes.items()):
        (folder / name).mkdir(parents=True)
        for index in range(count):
            pixels = rng.integers(0, 120, (size[1], size[0], 3), dtype=np.uint8)
            pixels[..., number % 3] += 100
            Image.fromarray(pixels).save(folder / name / f"{index:03d}.jpg")
    return folder


def write_mnist(folder: Path, packed: bool = True) -> Path:
    """Files as MNIST has them, of 30 images to train on and 10 to validate; the folder that holds
    them."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, count in (("train", 30), ("t10k", 10)):
        pixels = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = rng.integers(0, 10, count, dtype=np.uint8)
        for name, content in (
            (
                f"{part}-images-idx3-ubyte",
                struct.pack(">IIII", 2051, count, 28, 28) + pixels.tobytes(),
            ),
            (f"{part}-labels-idx1-ubyte", struct.pack(">II", 2049, count) + labels.tobytes()),
        ):
            if packed:
                (raw / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (raw / name).write_bytes(content)
    return raw


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of ten photographs, in a folder whose name is not easy."""
    return write_photos(tmp_path / 'my "best" photo\'s 写真', {"oiseau é": 10, "森 's": 10})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a start, with nothing in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package, which a test may edit, in the place of the one whose files are in the
    keys."""
    copied = tmp_path / "study"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("study.base.files.PACKAGE", copied)
    return copied
