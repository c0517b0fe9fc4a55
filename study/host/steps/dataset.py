"""The dataset step: from a plan to a manifest, with a second check once every image was opened."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from study.artifacts.manifest import Manifest
from study.artifacts.plan import read_plan
from study.base.files import write_if_changed
from study.config.sections import Dataset
from study.data.preflight import check_batch_size
from study.data.sources import source_of
from study.host.engine.mounts import check_visible


@contextmanager
def one_download(results: Path, dataset: Dataset) -> Iterator[None]:
    """Hold the lock of the source within the context, if it downloads: the next step reuses what this one brought."""
    if not source_of(dataset).downloads:
        yield
        return
    results.mkdir(parents=True, exist_ok=True)
    with FileLock(results / f".{dataset.source}.lock"):
        yield


def make(plan_file: Path, dataset_id: str, results: Path) -> Manifest:
    """Make the data of one dataset of the plan, write its manifest last, and return it."""
    plan = read_plan(plan_file)
    runs = [run for run in plan.runs if run.dataset == dataset_id]
    dataset, target = runs[0].settings.dataset, results / "data" / dataset_id
    source = source_of(dataset)
    manifest = source.make(dataset, target, results)
    base = source.base(dataset, target, results)
    if plan.engine != "none" and base != target:
        check_visible(base, [item.name for item in manifest.items], not os.getuid())
    for run in runs:
        check_batch_size(run.settings, manifest.train_images, plan.name)
    write_if_changed(target / "manifest.json", manifest.model_dump_json(indent=1))
    return manifest
