"""From a study to its runs: factors x replicates, their names, keys and seeded order."""

import dataclasses
import itertools
import json
import os
import random
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from study import fingerprint, own_model, strategy
from study.config import Device, Selection, Settings, Strict, Study, get, with_values
from study.data import preflight
from study.errors import StudyError
from study.images import ImageRequest
from study.load import check_settings, read_study

SHORT = {
    "training.batch_size": "bs",
    "inference.batch_size": "bs",
    "loader.workers": "workers",
    "dataset.image_size": "px",
    "training.epochs": "epochs",
}
SHARED_WORK = {"training.strategy", "training.processes"}
"""Factors that say who does the work, and leave what is done as it is."""
ON_A_CPU_ALONE = ("fp32_onnx", "int8")
"""Precisions of inference for which this project has no runtime on a GPU."""


@dataclass(frozen=True)
class Place:
    """Where runs execute: the engine or ``none`` for the host, why, and the image of each device."""

    engine: str
    reason: str
    images: dict[Device, ImageRequest] = dataclasses.field(default_factory=dict)
    inside: str | None = None  # the container of the whole pipeline: no host like the others

    def image(self, device: Device) -> str | None:
        """What tells the image of a device from another; None on the host."""
        return self.images[device].identity if device in self.images else self.inside


class Run(Strict):
    """One planned run. ``key`` names its design; the record is ``<name>.<key>.json``."""

    name: str = Field(description="Readable, unique in the study, safe as a file name.")
    key: str = Field(description="Eight hex digits over all that decides the result.")
    settings: Settings = Field(description="The resolved configuration.")
    factors: dict[str, Any] = Field(description="This run's level of each factor.")
    block: int = Field(description="Replicate: each block holds every configuration once.")
    position: int = Field(description="Place in the seeded order of the whole study, from 1.")
    dataset: str = Field(description="The folder under `results/data` with this run's manifest.")
    weights: str = Field(description="The file under `weights` with the decision for this run's model.")
    unavailable: str | None = Field(None, description="Why this machine cannot run it.")

    @property
    def file(self) -> str:
        """The record's file name."""
        return f"{self.name}.{self.key}.json"


class Plan(Strict):
    """A study and its runs, in the order in which they are to be executed."""

    name: str
    study: Study
    runs: list[Run]
    engine: str
    engine_reason: str
    images: dict[Device, ImageRequest] = Field({}, description="The image of each device; empty on the host.")

    def preparing_device(self) -> Device | None:
        """The device whose image prepares data and weights: one that runs here, for both hold the same software."""
        used = {run.settings.device for run in self.runs if not run.unavailable}
        return "cpu" if "cpu" in used else "cuda" if used else None

    def measures_ceilings(self, run: Run) -> bool:
        """Whether this run also measures what its device can do: the first on each device in each precision."""
        if run.settings.task == "inference":  # no training step of it is reported
            return False
        like = (run.settings.device, run.settings.training.precision)
        first = next(r for r in self.runs if (r.settings.device, r.settings.training.precision) == like)
        return run.name == first.name

    def seed_name(self, run: Run) -> str:
        """What a run's seed is made of: its name, less how many processes share its work. So one process and many
        start from the same weights, and draw the same batches."""
        if not SHARED_WORK & run.factors.keys():
            return run.name
        rest = {key: level for key, level in run.factors.items() if key not in SHARED_WORK}
        return f"{_label(rest, self.study)}-r{run.block}"

    def run(self, name: str) -> Run:
        """The run called ``name``."""
        for run in self.runs:
            if run.name == name:
                return run
        raise StudyError(f"run: {self.name} plans no run {name!r}; allowed: {', '.join(run.name for run in self.runs)}")


def make_plan(
    name: str,
    study: Study,
    place: Place,
    absent: dict[str, str | None],
    counts: Mapping[str, int] | None = None,
    earlier: Plan | None = None,
) -> Plan:
    """Every run of ``study``, checked as far as it can be without opening an image.

    ``absent`` tells for each device why it cannot serve (None: it can), ``counts`` how many of it there are: at least
    one of each that can, where nothing is said. ``earlier`` is the study's last plan, from which a run whose device is
    away takes how many processes it has.
    """
    counts = counts or {device: int(not reason) for device, reason in absent.items()}
    base = {key: value for key, value in study.model_dump().items() if key in Settings.model_fields}
    configurations = []
    for levels in itertools.product(*study.factors.values()):
        given = dict(zip(study.factors, levels, strict=True))
        settings = check_settings(with_values(base, given), f"study {name}")
        dataset_id, train_images = _dataset(settings)
        before = _processes_before(earlier, {key: get(settings, key) for key in given})
        settings, trouble = strategy.resolve(settings, counts.get(settings.device, 0), name, train_images, before)
        factors = {key: get(settings, key) for key in given}  # as checked: 1 may have become 1.0
        preflight.check_batch_size(settings, train_images, name)
        own_model.check(settings.model.name, Path(), place.engine)
        weights_id = _weights(settings, name)
        image = place.image(settings.device)
        identity = fingerprint.run_identity(settings, dataset_id, weights_id, place.engine, image)
        trouble = absent.get(settings.device) or trouble
        configurations.append((_label(factors, study), factors, settings, dataset_id, weights_id, identity, trouble))
    if study.curve and not all(type(level) in (int, float) for level in study.factors[study.curve.x]):
        raise StudyError(
            f"study {name}: curve.x: {study.curve.x!r} has levels that are no numbers: {study.factors[study.curve.x]}"
        )
    labels = _unique([item[0] for item in configurations], [item[1] for item in configurations])

    runs: list[Run] = []
    for block in range(1, study.replicates + 1):
        order = list(range(len(configurations)))
        random.Random(f"{study.seed}/{block}").shuffle(order)
        for index in order:
            _, factors, settings, dataset_id, weights_id, identity, trouble = configurations[index]
            runs.append(
                Run(
                    name=f"{labels[index]}-r{block}",
                    key=fingerprint.digest(identity),
                    settings=settings,
                    factors=factors,
                    block=block,
                    position=len(runs) + 1,
                    dataset=dataset_id,
                    weights=weights_id,
                    unavailable=trouble or _not_on_this_device(settings),
                )
            )
    levels_as_checked = {key: list(dict.fromkeys(item[1][key] for item in configurations)) for key in study.factors}
    for key, distinct in levels_as_checked.items():
        if len(distinct) < len(study.factors[key]):
            raise StudyError(f"study {name}: factors.{key}: {study.factors[key]} holds a level twice")
    checked = study.model_copy(update={"factors": levels_as_checked})
    return Plan(
        name=name, study=checked, runs=runs, engine=place.engine, engine_reason=place.reason, images=place.images
    )


def read_all(selection: Selection, folder: Path) -> dict[str, Study]:
    """Every selected study, by its name."""
    return {name: read_study(name, folder, selection) for name in selection.studies}


def plan_all(
    studies: dict[str, Study],
    place: Place,
    absent: dict[str, str | None],
    counts: Mapping[str, int] | None = None,
    earlier: Mapping[str, Plan] | None = None,
) -> list[Plan]:
    """The plan of each study; ``earlier`` holds the last one of those that have one."""
    return [make_plan(name, study, place, absent, counts, (earlier or {}).get(name)) for name, study in studies.items()]


def _processes_before(earlier: Plan | None, factors: dict[str, Any]) -> int | None:
    """How many processes an earlier plan gives the run of these factors' levels; None where it has no such run.

    Nor where the number is itself a factor, whose levels the earlier plan had as numbers: which was ``auto`` is lost.
    """
    like = next((run.settings.training for run in earlier.runs if run.factors == factors), None) if earlier else None
    return None if like is None or like.processes == "auto" else like.processes


def _not_on_this_device(settings: Settings) -> str | None:
    """Why no machine can make a run as its settings say; None where one could."""
    precision = settings.inference.precision
    if settings.task == "inference" and settings.device != "cpu" and precision in ON_A_CPU_ALONE:
        return f"inference.precision {precision} is executed by ONNX Runtime, on a CPU alone"
    return None


def _dataset(settings: Settings) -> tuple[str, int]:
    dataset = settings.dataset
    listing = preflight.list_files(dataset)
    identity = fingerprint.dataset_identity(dataset, listing)
    return f"{dataset.source}.{fingerprint.digest(identity)}", preflight.expected_train_images(dataset, listing)


def _weights(settings: Settings, study: str) -> str:
    name, weights = settings.model.name, settings.model.weights
    identity: dict[str, Any] = {"model": name, "weights": weights}
    label = weights
    if weights == "none":
        identity["seed"] = settings.seed
    elif weights != "imagenet":
        path = _existing_file(weights)
        if path is None:
            raise StudyError(
                f"study {study}: model.weights: {weights!r} is not allowed: no such file; "
                "allowed: imagenet, none, a path"
            )
        identity["weights"], label = fingerprint.stat_of(path), "file"
    # The decision tries the model: of a user's own, what it is tried on is part of it. torchvision's share a decision
    # whatever the images' size, or one level might start from ImageNet's weights and another from random ones.
    images = settings.dataset
    if code := own_model.sources(name, Path()):
        identity["code"] = own_model.code_sha256(code)
        identity["images"] = [preflight.expected_classes(images), images.channels, images.image_size]
    return f"{_slug(name)}-{label}.{fingerprint.digest(identity)}"


def _existing_file(given: str) -> Path | None:
    try:
        path = Path(given).expanduser()
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # a name that is too long, a user that does not exist
        return None


def _label(factors: dict[str, Any], study: Study) -> str:
    """``bs16-cpu``: the curve's factor first, the device last."""
    first = study.curve.x if study.curve else None
    keys = sorted(factors, key=lambda key: (key != first, key == "device", list(factors).index(key)))
    return "-".join(_part(key, factors[key]) for key in keys) or "run"


def _part(key: str, level: Any) -> str:
    if isinstance(level, str) and key not in SHORT:
        return _slug(level)
    return SHORT.get(key, key.rsplit(".", 1)[-1].replace("_", "")) + _slug(level)


def _slug(level: Any) -> str:
    text = str(level).lower() if isinstance(level, bool) else str(level)
    if isinstance(level, str) and os.sep in level:  # a path's base name: names of runs are shared
        return f"{_slug(Path(level).name)[:24]}_{fingerprint.digest(text)[:4]}"
    safe = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")
    # Names of photographs' folders and the like lose letters: a digest keeps them apart.
    return safe if safe == text or re.fullmatch(r"[\d.]+", text) else f"{safe[:24]}_{fingerprint.digest(text)[:4]}"


def _unique(labels: list[str], factors: list[dict[str, Any]]) -> list[str]:
    """A label for each configuration; one that is there twice is an error."""
    for levels in factors:
        if factors.count(levels) > 1:
            raise StudyError(f"factors: {levels} come together more than once: `single` has one process, whatever else")
    return [
        label if labels.count(label) == 1 else f"{label}-{fingerprint.digest(levels)[:4]}"
        for label, levels in zip(labels, factors, strict=True)
    ]


def table(plan: Plan) -> str:
    """The runs as text: name, factors, block, position, and where a run cannot be made, why."""
    head = ["position", "block", "name", *plan.study.factors, "key", ""]
    rows = [
        [
            str(run.position),
            str(run.block),
            run.name,
            *(str(get(run.settings, key)) for key in plan.study.factors),
            run.key,
            f"unavailable: {run.unavailable}" if run.unavailable else "",
        ]
        for run in plan.runs
    ]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]
    )


def write_if_changed(path: Path, text: str) -> None:
    """Leave the file, and its time, alone where its content is already ``text``."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)


def write_plans(plans: Iterable[Plan], results: Path, only_missing: bool = False) -> None:
    """``results/plan.json`` (what is selected) and one ``results/<study>/plan.json`` for each study."""
    plans = list(plans)
    files = {results / plan.name / "plan.json": plan.model_dump_json(indent=1) for plan in plans}
    files[results / "plan.json"] = json.dumps({"studies": [plan.name for plan in plans]}, indent=1)
    for path, text in files.items():
        if not (only_missing and path.exists()):
            write_if_changed(path, text)


def read_earlier(names: Iterable[str], results: Path) -> dict[str, Plan]:
    """The last plan of each study that has one which can still be read."""
    found = {}
    for name in names:
        with suppress(OSError, ValueError):  # another version's plan, or half of one: none
            found[name] = read_plan(results / name / "plan.json")
    return found


def read_plan(path: Path) -> Plan:
    """The plan that :func:`write_plans` left."""
    return Plan.model_validate_json(path.read_text(encoding="utf-8"))
