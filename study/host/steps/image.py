"""The image step: bring the image of a device and describe it, or save it as an archive."""

import sys
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.plan import read_plan
from study.artifacts.prepared import read_image
from study.base import devices
from study.base.errors import StudyError
from study.base.files import write_if_changed
from study.config.sections import Device
from study.host.engine import bring
from study.host.engine.engines import engine


def prepare(plan_file: Path, name: str, results: Path, log: Path | None) -> str:
    """Build, load or pull the image that the plan has under ``name``, describe it, and return a line about it.

    The engine's output goes to ``log``, by default a file in ``results``.
    """
    plan, files = read_plan(plan_file), Results(results)
    if plan.engine == "none":
        raise StudyError(f"images: runs execute on the host ({plan.engine_reason}), which needs no image")
    if name not in plan.images:
        raise StudyError(f"image: {plan.name} has no image {name!r}; allowed: {', '.join(plan.images)}")
    wanted = plan.images[name]
    print(f"image {name}: {wanted.reference} (a first build takes minutes)", file=sys.stderr, flush=True)
    log = log or files.log("images", name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        gpu = wanted.device == "cuda" and devices.absent("cuda") is None
        made = bring.make(engine(plan.engine), wanted, results, file, gpu)
    write_if_changed(files.image(name), made.model_dump_json(indent=1))
    how = f"built in {made.build_seconds:.0f} s" if made.build_seconds else "already there"
    return f"image {name}: {made.id[:19]}, {how}, Python {made.python}"


def archive(device: Device, results: Path) -> Path:
    """Save the image of ``device`` as an archive in ``results``, and return its path."""
    made, target = read_image(Results(results).image(device)), Results(results).image_archive(device)
    engine(made.engine).save(made, target)
    return target
