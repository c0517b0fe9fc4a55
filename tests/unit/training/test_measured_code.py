"""A run's key holds the code that the run executes, and no other."""

from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from study.base.files import PACKAGE
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.keys import measured_code
from tests.conftest import plan_at, tiny_plan
from tests.unit.training.forks import said_by_forks

FASTAI = {"loop": "fastai", "freeze_epochs": 0, "batch_size": 4}
DDP = {"strategy": "ddp", "processes": 2, "freeze_epochs": 0, "batch_size": 4}
INFERENCE: dict[str, Any] = {"task": "inference", "curve": None, "factors": {"inference.batch_size": [1]}}


def files_in_the_key(**changes: Any) -> set[str]:
    """Return the paths below the package of the code in the key of a tiny study's first run."""
    plan = plan_at(EngineChoice("none", "asked for"), counts={"cpu": 2, "cuda": 0}, **changes)
    patterns = measured_code(plan.runs[0].settings)
    return {path.relative_to(PACKAGE).as_posix() for pattern in patterns for path in PACKAGE.glob(pattern)}


EXECUTED: list[tuple[str, dict[str, Any]]] = [
    ("loops.torch.loop", {}),
    ("loops.torch.loop distributed.ranks distributed.rank distributed.agent", {"training": DDP}),
    ("loops.fastai.loop", {"training": FASTAI, "loader": {"kind": "workers"}}),
    ("loops.loader_alone.loop", {"loader": {"kind": "alone"}}),
    ("loops.torch.loop loops.inference.loop loops.inference.onnx_runtime", INFERENCE),
]
"""The modules of :mod:`study.training` that a run executes beside its job, and what its study has."""


def test_every_module_that_a_run_executes_is_in_its_key() -> None:
    """The training side and the data that a training process imports are in the key; the rest hands values over."""
    imports = [", ".join(f"study.training.{name}" for name in ["job", *modules.split()]) for modules, _ in EXECUTED]
    found = said_by_forks([f"import {names}, sys; print(*sys.modules)" for names in imports])
    checks_values = {"data/preflight.py", "data/splits.py", "data/sources.py"}  # a source's own code is in its key
    for modules, (_, changes) in zip(found, EXECUTED, strict=True):
        imported = {name.removeprefix("study.").replace(".", "/") for name in modules.split() if "study." in name}
        imported = {f"{name}.py" for name in imported if (PACKAGE / f"{name}.py").is_file()}
        executed = {name for name in imported if name.startswith(("training/", "data/"))}
        assert executed
        assert executed - checks_values <= files_in_the_key(**changes)


def test_every_package_that_a_run_imports_is_in_its_key() -> None:
    """What reads and writes our own files decides no time, and is not in it."""
    ours = {"pydantic", "pydantic-core", "annotated-types", "typing-inspection", "pyyaml", "packaging"}
    only_looked_for = {"dill", "tqdm", "pyarrow"}  # by torch and by pandas, which ask for none of them
    imports = [", ".join(f"study.training.{name}" for name in ["job", *modules.split()]) for modules, _ in EXECUTED]
    found = said_by_forks([f"import {names}, sys; print(*{{*sys.modules}})" for names in imports])
    by_module, lacking = packages_distributions(), set[str]()
    for modules, (_, changes) in zip(found, EXECUTED, strict=True):
        tops = {name.partition(".")[0] for name in modules.split()} - {"study"}
        imported = {canonicalize_name(name) for top in tops for name in by_module.get(top, [])}
        plan = plan_at(EngineChoice("none", "asked for"), counts={"cpu": 2, "cuda": 0}, **changes)
        assert "torch" in imported
        lacking |= imported - plan.packages.keys()
    assert lacking - ours - only_looked_for == set()


def test_a_run_has_no_other_loop_in_its_key() -> None:
    other = {"fastai", "inference", "loader_alone"}
    assert not [name for name in files_in_the_key() if set(name.split("/")) & {*other, "distributed"}]


def test_a_new_file_of_the_training_side_is_in_every_key() -> None:
    everything = {path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "training").rglob("*.py")}
    folders = {"loops/torch", "loops/fastai", "loops/inference", "loops/loader_alone", "distributed"}
    common = {name for name in everything if not any(f"training/{folder}/" in name for folder in folders)}
    assert common <= files_in_the_key()
    assert common <= files_in_the_key(**INFERENCE)


@pytest.mark.parametrize(
    "edited",
    [
        "training/loops/torch/loop.py",
        "training/job.py",
        "training/models/build.py",
        "training/instruments/clock.py",
        "training/loops/loaders.py",
        "data/decode.py",
    ],
)
def test_an_edit_of_the_measured_code_makes_new_records(edited: str, package: Path) -> None:
    before = {run.file for run in tiny_plan().runs}
    edit(package / edited)
    assert before.isdisjoint(run.file for run in tiny_plan().runs)


@pytest.mark.parametrize(
    "edited",
    [
        "training/loops/fastai/loop.py",
        "analysis/report/context.py",
        "analysis/answers/curve.py",
        "host/steps/launch.py",
    ],
)
def test_an_edit_elsewhere_keeps_every_record(edited: str, package: Path) -> None:
    before = {run.file for run in tiny_plan().runs}
    edit(package / edited)
    assert before == {run.file for run in tiny_plan().runs}


def edit(path: Path) -> None:
    """Append a line, which no other edit of the file can break."""
    assert path.is_file()
    with path.open("a", encoding="utf-8") as file:
        file.write("\n# edited\n")
