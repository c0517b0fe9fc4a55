"""The templates of a start: processes that have imported what its steps and runs need, and fork them.

There is one for the steps around the runs, one for those of the analysis, and one for the runs of each device, loop and
limit of CPUs.
A template imports at the first request. Those that come first get one at once, so that the runs' template imports while
data and weights are prepared. The others would disturb the runs before theirs.
"""

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.base.files import package_sha256
from study.base.processes import die_with
from study.base.step import TEMPLATES
from study.config.settings import Settings, loops
from study.host.engine import container
from study.host.engine.lifetime import allowed_cpus
from study.host.forked import JOB_MODULE, template_of

WAITING = 64
"""Requests that may wait at a template."""
STEPS = ["study.cli", "study.host.steps.launch", "study.host.steps.dataset", "study.host.steps.weights"]
ANALYSIS = [
    "study.cli",
    "study.analysis.table.step",
    "study.analysis.stats.step",
    "study.analysis.figures.step",
    "study.analysis.report.step",
]


def start_templates(plans: Sequence[Plan], pending: Sequence[tuple[str, str]], results: Results) -> None:
    """Start the templates of this start, where the system can serve them. They end with this process.

    The steps find them by a variable in their environment. In containers runs have no template. If the variable names
    templates already, which serve this code and whose process is there, then only those are started that are missing.
    """
    if not can_fork():
        return
    code = package_sha256()[:16]
    if not _serves(os.environ.get(TEMPLATES, ""), code):
        os.environ[TEMPLATES] = f"study-template.{os.getpid()}.{secrets.token_hex(8)}.{code}"
    steps, analysis = (f"{os.environ[TEMPLATES]}.{name}" for name in ("steps", "analysis"))
    start_template(steps, STEPS, os.environ, results)
    start_template(analysis, ANALYSIS, os.environ, results)
    runs = _forked_runs(plans, pending)
    for name, settings in runs.items():
        modules = [JOB_MODULE, f"study.training.loops.{loops(settings)[-1]}.loop"]
        cpus = allowed_cpus(settings.limits.cpus) if settings.limits.cpus else None
        start_template(name, modules, container.environment(settings.device, os.environ), results, cpus)
    for name in [steps, *list(runs)[:1]]:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as first:
            first.connect(f"\0{name}")


def can_fork() -> bool:
    """Return whether this system has what a template needs: Linux from 5.3 on, without a rule against it."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # an older kernel, or a container's filter of system calls
        return False
    return True


def _serves(templates: str, code: str) -> bool:
    """Return whether templates of this name were started for ``code`` by a process that is still there."""
    words = templates.split(".")
    return words[3:] == [code] and Path("/proc", words[1]).exists()


def _forked_runs(plans: Sequence[Plan], pending: Sequence[tuple[str, str]]) -> dict[str, Settings]:
    """Return settings by the names of the templates that the runs need, in the order of the runs."""
    known = {(plan.name, run.name): run.settings for plan in plans if plan.engine == "none" for run in plan.runs}
    runs = [known[run] for run in pending if run in known]
    return {name: settings for settings in runs if settings.process == "forked" and (name := template_of(settings))}


def start_template(
    name: str,
    modules: Sequence[str],
    environment: Mapping[str, str],
    results: Results,
    cpus: Sequence[int] | None = None,
) -> None:
    """Start a template that listens at ``name``, which the kernel holds until the template ends, on its ``cpus``.

    Without it, where it cannot be started, each step does its work in a process of its own.
    """
    log = results.log("templates", name.split(".", 4)[-1])
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        suppress(OSError),
        socket.socket(socket.AF_UNIX) as listening,
        log.open("w", encoding="utf-8") as output,
    ):
        listening.bind(f"\0{name}")
        listening.listen(WAITING)
        # Without threads of its own a template forks what another program would have started.
        subprocess.Popen(
            [sys.executable, "-m", "study.base.template", str(listening.fileno()), *modules],
            env=dict(environment) | {"OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[listening.fileno()],
            start_new_session=True,
            preexec_fn=partial(_prepare, os.getpid(), cpus),
        )


def _prepare(parent: int, cpus: Sequence[int] | None) -> None:
    """End the template's process with its parent, and leave it its CPUs alone."""
    die_with(parent)
    if cpus:
        os.sched_setaffinity(0, cpus)
