"""Environments of packages on the host, each made from a lock, in which runs of one study are
compared."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.prepared import Packages
from study.base.environment import HOST, Environment, own
from study.base.errors import StudyError
from study.base.files import LARGEST_LOCK, PACKAGE, digest, existing_file, file_sha256
from study.host.engine.base import last_words
from study.host.supervise import new_log

TEST = "study.training.instruments.machine"
"""The module that imports what runs import, and prints the versions."""


def name_of(lock: str, study: str, engine: str) -> tuple[str, str]:
    """Return the name of the environment from a lock, which tells of its content and of the Python,
    and its full path.

    Raise :class:`StudyError` if there is no such lock, or if runs execute in images.
    """
    path = existing_file(lock, LARGEST_LOCK)
    refused = partial(StudyError, source=f"study {study}", key="environment", value=lock)
    if engine != "none":
        why = "an image holds its own packages, and `image` takes locks, too"
        raise refused(context=f"with {engine}", why=why)
    if path is None:
        why = "no such file, or one of more than 64 MiB"
        raise refused(why=why, allowed="the path of a lock")
    return digest([file_sha256(path), sys.version_info[:3], sys.platform]), str(path.resolve())


def python_of(name: str | None, files: Results) -> str:
    """Return the interpreter of an environment; without a name that of the start."""
    return str(_environment(name, files).python) if name else sys.executable


def _environment(name: str, files: Results) -> Environment:
    tools = own().tools if HOST.is_file() else files.environment_folder(".uv").absolute()
    return Environment(files.environment_folder(name).absolute(), tools)


def is_current(name: str, files: Results) -> bool:
    """Return whether an environment is there, and runs of it execute this code."""
    there = _environment(name, files)
    return there.python.exists() and (there.packages / PACKAGE.name).resolve() == PACKAGE.resolve()


def make(plan_file: Path, name: str, results: Path, log: Path | None) -> str:
    """Make the environment that the plan has under ``name``, test it, describe it, and return a
    line about it.

    The installer's output goes to ``log``. Raise :class:`StudyError` if a package cannot be had, or
    if the environment cannot run the training code.
    """
    plan, files = Plan.read(plan_file), Results(results)
    if name not in plan.environments:
        allowed = ", ".join(plan.environments) or "none"
        raise StudyError(
            f"environment: {plan.name} has no environment {name!r}; allowed: {allowed}"
        )
    there, lock = _environment(name, files), Path(plan.environments[name])
    if not there.holds(lock):
        there.install(lock)
    code = there.packages / PACKAGE.name
    code.unlink(missing_ok=True)  # it may be that of another installation
    code.symlink_to(PACKAGE)
    made = _tested(there, lock, log or files.log("environments", name))
    made.write(files.environment(name))
    return f"environment {lock.name}: {len(made.libraries)} packages of runs, Python {made.python}"


def _tested(there: Environment, lock: Path, log: Path) -> Packages:
    """Return the description of an environment, which imports what runs import and prints its
    versions."""
    with new_log(log) as file:
        done = subprocess.run(
            [there.python, "-m", TEST], stdout=subprocess.PIPE, stderr=file, text=True
        )
    try:
        seen = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        last = last_words(log.read_text(encoding="utf-8", errors="replace"))
        raise StudyError(
            f"environment {lock.name}: it cannot run the training code: {last}"
        ) from None
    return Packages(
        lock=lock.name,
        lock_sha256=file_sha256(lock),
        python=seen["python"],
        libraries=seen["libraries"],
    )
