"""A run's key holds the code that the run executes, and no other."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from study.artifacts.plan import Plan
from study.base.files import PACKAGE
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.keys import measured_code
from tests.conftest import ROOT, plan_at, tiny_plan

FASTAI = {"loop": "fastai", "freeze_epochs": 0, "batch_size": 4}
DDP = {"strategy": "ddp", "processes": 2, "freeze_epochs": 0, "batch_size": 4}


def files_in_the_key(plan: Plan) -> set[str]:
    """Return the paths below the package of the code in the key of a plan's first run."""
    patterns = measured_code(plan.runs[0].settings)
    return {
        path.relative_to(PACKAGE).as_posix()
        for pattern in patterns
        for path in PACKAGE.glob(pattern)
    }


EXECUTED: list[tuple[str, dict[str, Any]]] = [
    ("loops.torch.loop", {}),
    ("loops.torch.loop distributed.ranks distributed.rank", {"training": DDP}),
    ("loops.fastai.loop", {"training": FASTAI, "loader": {"kind": "workers"}}),
]
"""The modules of :mod:`study.training` that a run executes beside its job, and what its study
has."""


def test_every_module_and_every_package_that_a_run_imports_is_in_its_key() -> None:
    """Of our own the training side and the data; the rest hands values over. What reads and writes
    our files decides no time, and is not in it."""
    ours = {
        "pydantic",
        "pydantic-core",
        "annotated-types",
        "typing-inspection",
        "pyyaml",
        "packaging",
    }
    # by torch and by pandas, which ask for none of them
    only_looked_for = {"dill", "tqdm", "pyarrow"}
    checks_values = {"data/splits.py", "data/sources.py"}  # a source's own code is in its key
    imports = [
        ", ".join(f"study.training.{name}" for name in ["job", *modules.split()])
        for modules, _ in EXECUTED
    ]
    found = said_by_forks([f"import {names}, sys; print(*sys.modules)" for names in imports])
    by_module = packages_distributions()
    for modules, (_, changes) in zip(found, EXECUTED, strict=True):
        plan = plan_at(EngineChoice("none", "asked for"), counts={"cpu": 2, "cuda": 0}, **changes)
        files = {f"{name.replace('.', '/')}.py" for name in modules.split()}
        executed = {
            name.removeprefix("study/")
            for name in files
            if name.startswith(("study/training/", "study/data/"))
        }
        executed = {name for name in executed if (PACKAGE / name).is_file()}
        assert "training/job.py" in executed
        assert executed - checks_values <= files_in_the_key(plan)
        tops = {name.partition(".")[0] for name in modules.split()} - {"study"}
        imported = {canonicalize_name(name) for top in tops for name in by_module.get(top, [])}
        assert "torch" in imported
        assert imported - plan.packages.keys() <= ours | only_looked_for


MEASURED = [
    "training/loops/torch/loop.py",
    "training/job.py",
    "training/instruments/clock.py",
    "data/decode.py",
]
ELSEWHERE = ["training/loops/fastai/loop.py", "analysis/report/content.py", "host/steps/block.py"]


@pytest.mark.parametrize("edited", [*MEASURED, *ELSEWHERE])
def test_an_edit_of_the_measured_code_alone_makes_new_records(edited: str, package: Path) -> None:
    before = {run.file for run in tiny_plan().runs}
    assert (package / edited).is_file()
    with (package / edited).open("a", encoding="utf-8") as file:
        file.write("\n# edited\n")
    after = {run.file for run in tiny_plan().runs}
    assert before.isdisjoint(after) if edited in MEASURED else before == after


FORKS = """
import os, sys
import psutil, torch, torchvision
assert psutil.Process().num_threads() == 1
for code in sys.argv[1:]:
    sys.stdout.flush()
    if not os.fork():
        exec(code)
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0, code
"""


def said_by_forks(programs: Sequence[str], variables: Mapping[str, str] | None = None) -> list[str]:
    """Return the line that each program says. torch and torchvision are imported once, which takes
    4 s of a core."""
    command = [sys.executable, "-c", FORKS, *programs]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **(variables or {})}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(programs), lines
    return lines
