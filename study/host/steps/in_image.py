"""The steps that need the training stack and the network, in a container: weights, and data that are downloaded.

The container writes only into a scratch folder. This module moves the files from there into ``results``, where they
belong to the caller.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from study.artifacts.image import read
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.host.engine import container, lifetime
from study.host.engine.container import PROXIES, Mount
from study.host.engine.engines import engine
from study.host.engine.mounts import code_mount, own_mounts, settings_inside

CACHE = "/cache"


def in_a_logged_container(verb: str, plan: Plan, run: Run, name: str, results: Path, log: Path) -> None:
    """Call :func:`in_a_container` with the file ``log``, which is written anew."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        in_a_container(verb, plan, run, name, results, file)


def in_a_container(verb: str, plan: Plan, run: Run, name: str, results: Path, log: TextIO) -> None:
    """Execute ``python -m study <verb>`` for one dataset or weights decision of ``plan`` in the image of its runs.

    Raise :class:`StudyError` with the step's own message if it fails.
    """
    image = read(Results(results).image(plan.preparing_device() or run.settings.device))
    settings, mounts = settings_inside(run.settings)
    small = plan.model_copy(
        update={"engine": "none", "images": {}, "runs": [run.model_copy(update={"settings": settings})]}
    )
    with lifetime.scratch_folder(results) as scratch:
        inside = scratch / "results"
        _lend(results, inside)
        plan_file = Results(inside).plan(plan.name)
        plan_file.parent.mkdir(parents=True, exist_ok=True)
        plan_file.write_text(small.model_dump_json(), encoding="utf-8")
        plan_file.chmod(0o644)
        _open(inside)
        at = Results(Path(container.SCRATCH, "results"))
        command = ["python", "-m", "study", verb, str(at.plan(plan.name)), name, "--results", str(at.root)]
        try:
            end, said = lifetime.enter(
                engine(plan.engine),
                image.run_as,
                command,
                scratch,
                [code_mount(), *own_mounts(settings), *mounts, *_torch_cache()],
                log,
                f"{verb} {name}",
                network=True,
                environment={"TORCH_HOME": CACHE},
                passed=[name for name in PROXIES if name in os.environ],
            )
        finally:
            if verb == "dataset":  # also after a failure, so that nothing is downloaded twice
                _take(inside / "data", results / "data")
        if end.code or end.trouble:
            raise StudyError(end.trouble or _own_error(said))
        plan_file.unlink()
        _take(inside, results)


def _own_error(said: Sequence[str]) -> str:
    errors = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    return (errors or list(said) or ["the step failed without a message"])[-1]


def _torch_cache() -> list[Mount]:
    """Return the mount of the weights that torch has already downloaded for this user; none without such a folder."""
    home = Path(os.environ.get("TORCH_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "torch")
    checkpoints = home.expanduser() / "hub" / "checkpoints"
    return [Mount(checkpoints.resolve(), f"{CACHE}/hub/checkpoints")] if checkpoints.is_dir() else []


def _lend(results: Path, inside: Path) -> None:
    """Link the files of earlier downloads into ``inside``, or copy them if the file system has no links."""
    lent = Results(results)
    for folder in (lent.hub, lent.downloads, lent.unpacked):
        for path in folder.rglob("*"):
            target = inside / path.relative_to(results)
            if path.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    os.link(path, target)
                except OSError:
                    shutil.copyfile(path, target)


def _open(folder: Path) -> None:
    """Let any user write into ``folder`` and its subfolders: the user inside may be another."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o777)


def _take(inside: Path, results: Path) -> None:
    """Move every complete file into ``results``, manifests last. A file of another user is copied for the caller."""
    for path in sorted(inside.rglob("*"), key=lambda path: (path.name == "manifest.json", path)):
        if not path.is_file() or path.suffix in (".tmp", ".lock"):
            continue
        target = results / path.relative_to(inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.stat().st_uid != os.getuid():
            own = target.with_name(f".{path.name}.own")
            shutil.copyfile(path, own)
            path = own
        path.chmod(0o644)
        if not (target.exists() and target.samefile(path)):
            path.replace(target)
