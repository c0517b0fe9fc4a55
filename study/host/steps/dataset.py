"""The dataset step: from a plan to a manifest, with a second check once every image was opened."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from study.artifacts.layout import Results
from study.artifacts.plan import Plan, read_plan
from study.artifacts.prepared import Manifest, read_manifest
from study.artifacts.run import Run
from study.base.errors import StudyError
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
    wanted = plan.runs_with("dataset", dataset)[0].settings.dataset
    source = source_of(wanted)
    with one_download(results, wanted):
        if plan.engine != "none" and (source.downloads or source.opens_given_files):
            made = _made_inside(plan, dataset, results, log or files.log("data", dataset))
        else:
            made = make(plan, dataset, results)
    left_out = f", {len(made.left_out)} left out" if made.left_out else ""
    return (
        f"data: {made.source}, {made.train_images} images to train and {made.valid_images} to validate, "
        f"{len(made.classes)} classes{left_out}"
    )


def _made_inside(plan: Plan, dataset: str, results: Path, log: Path) -> Manifest:
    """Make the data in the image of the runs, and return the manifest once it fits every run of the plan."""
    runs, path = plan.runs_with("dataset", dataset), Results(results).manifest(dataset)
    wanted = runs[0].settings.dataset
    source = source_of(wanted)
    if source.opens_given_files:
        seen = [name for name, *_ in source.look(wanted).files or []]
        check_visible(source.base(wanted, path.parent, results), seen, not os.getuid())
    in_a_logged_container(dataset_task(dataset, source.downloads), plan, runs[0], results, log)
    manifest = read_manifest(path)
    try:
        _check_batches(plan, runs, manifest)
    except StudyError:
        path.unlink()  # a manifest that is there is one that the runs can use
        raise
    return manifest


def _check_batches(plan: Plan, runs: Iterable[Run], manifest: Manifest) -> None:
    for run in runs:
        check_batch_size(run.settings, manifest.train_images, plan.name)


def make(plan: Plan, dataset_id: str, results: Path) -> Manifest:
    """Make the data of one dataset of the plan here, write its manifest last, and return it."""
    runs = plan.runs_with("dataset", dataset_id)
    dataset, target = runs[0].settings.dataset, Results(results).data(dataset_id)
    with room_for(target):
        manifest = source_of(dataset).make(dataset, target, results)
    _check_batches(plan, runs, manifest)
    write_if_changed(Results(results).manifest(dataset_id), manifest.model_dump_json(indent=1))
    return manifest
