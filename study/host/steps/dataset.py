"""The dataset step: from a plan to a manifest, with a second check once every image was opened."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from study.artifacts.layout import Results
from study.artifacts.manifest import Manifest, read_manifest
from study.artifacts.plan import Plan, read_plan
from study.base.files import room_for, write_if_changed
from study.config.sections import Dataset
from study.data.preflight import check_batch_size
from study.data.sources import source_of
from study.host.engine.mounts import check_visible
from study.host.steps.in_image import dataset_task, in_a_logged_container


@contextmanager
def one_download(results: Path, dataset: Dataset) -> Iterator[None]:
    """Hold the lock of the source within the context, if it downloads: the next step reuses what this one brought."""
    if not source_of(dataset).downloads:
        yield
        return
    results.mkdir(parents=True, exist_ok=True)
    with FileLock(Results(results).download_lock(dataset.source)):
        yield


def prepare(plan_file: Path, dataset: str, results: Path, log: Path | None) -> str:
    """Make the data of ``dataset``, here or in a container, and return a line about them.

    A container's output goes to ``log``, by default a file in ``results``.
    """
    plan, files = read_plan(plan_file), Results(results)
    run = plan.runs_with("dataset", dataset)[0]
    with one_download(results, run.settings.dataset):
        if plan.engine != "none" and source_of(run.settings.dataset).downloads:
            in_a_logged_container(dataset_task(dataset), plan, run, results, log or files.log("data", dataset))
            made = read_manifest(files.manifest(dataset))
        else:
            made = make(plan, dataset, results)
    left_out = f", {len(made.left_out)} left out" if made.left_out else ""
    return (
        f"data: {made.source}, {made.train_images} images to train and {made.valid_images} to validate, "
        f"{len(made.classes)} classes{left_out}"
    )


def make(plan: Plan, dataset_id: str, results: Path) -> Manifest:
    """Make the data of one dataset of the plan, write its manifest last, and return it."""
    runs = plan.runs_with("dataset", dataset_id)
    dataset, target = runs[0].settings.dataset, Results(results).data(dataset_id)
    source = source_of(dataset)
    with room_for(target):
        manifest = source.make(dataset, target, results)
    base = source.base(dataset, target, results)
    if plan.engine != "none" and base != target:  # the user's own folder, which a container mounts
        check_visible(base, [item.name for item in manifest.items], not os.getuid())
    for run in runs:
        check_batch_size(run.settings, manifest.train_images, plan.name)
    write_if_changed(Results(results).manifest(dataset_id), manifest.model_dump_json(indent=1))
    return manifest
