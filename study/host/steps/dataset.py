"""The dataset step: from a plan to a manifest, with a second check once every image was opened."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from study.artifacts.manifest import Manifest
from study.artifacts.plan import read_plan
from study.base.files import write_if_changed
from study.data import folder, generated, torchvision_sets
from study.data.preflight import check_batch_size
from study.host.engine.mounts import check_visible

DOWNLOADED = (*torchvision_sets.CLASS, "search")
"""Sources that need the network and the packages of the training environment; in its image, if there is one."""


@contextmanager
def one_search(results: Path, source: str) -> Iterator[None]:
    """Hold the lock of searches within the context: the next search of the same terms reuses what this one found."""
    if source != "search":
        yield
        return
    results.mkdir(parents=True, exist_ok=True)
    with FileLock(results / ".search.lock"):
        yield


def make(plan_file: Path, dataset_id: str, results: Path) -> Manifest:
    """Make the data of one dataset of the plan, write its manifest last, and return it."""
    plan = read_plan(plan_file)
    runs = [run for run in plan.runs if run.dataset == dataset_id]
    dataset, target = runs[0].settings.dataset, results / "data" / dataset_id
    if dataset.source == "generated":
        manifest = generated.draw(dataset, target)
    elif dataset.source == "folder":
        manifest = folder.verify(dataset)
        if plan.engine != "none":
            check_visible(Path(str(dataset.path)).expanduser(), [item.name for item in manifest.items], not os.getuid())
    elif dataset.source == "search":
        from study.data.search import fetch as search_fetch

        manifest = search_fetch.fetch(dataset, target, results)
    else:
        manifest = torchvision_sets.fetch(dataset, results)
    for run in runs:
        check_batch_size(run.settings, manifest.train_images, plan.name)
    write_if_changed(target / "manifest.json", manifest.model_dump_json(indent=1))
    return manifest
