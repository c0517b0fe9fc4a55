"""From a study to its runs: factors x replicates, their names, keys and seeded order."""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.artifacts.names import label, slug, unique
from study.artifacts.plan import Plan
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.base.files import digest, stat_of
from study.config import own_model
from study.config.load import check_settings, read_study
from study.config.selection import Selection
from study.config.settings import Settings, get, with_values
from study.config.study import Study
from study.data import preflight, sources
from study.host.engine.place import Place
from study.host.plan import keys, process_count

ON_A_CPU_ALONE = ("fp32_onnx", "int8")
"""Precisions of inference that this project cannot execute on a GPU."""


@dataclass(frozen=True)
class Configuration:
    """One level of each factor, and the values that its runs share: each replicate is a run of its own."""

    factors: dict[str, Any]
    settings: Settings
    dataset: str
    weights: str
    key: str
    unavailable: str | None


def make_plan(
    name: str,
    study: Study,
    place: Place,
    absent: dict[str, str | None],
    counts: Mapping[str, int] | None = None,
    earlier: Plan | None = None,
) -> Plan:
    """Return the plan of ``study``, with every run checked as far as possible without opening an image.

    ``absent`` holds for each device the reason why it cannot be used, or None if it can. ``counts`` is the number of
    units of each device (default: one of each usable device). ``earlier`` is the study's last plan: a run whose device
    is absent takes its number of processes from there. Raise :class:`StudyError` for a study that cannot be planned.
    """
    counts = counts or {device: int(not reason) for device, reason in absent.items()}
    configurations = [
        _configuration(name, settings, list(study.factors), place, absent, counts, earlier)
        for settings in _combinations(name, study)
    ]
    _check_curve(name, study)
    labels = unique([label(item.factors, study) for item in configurations], [item.factors for item in configurations])
    as_checked = {key: list(dict.fromkeys(item.factors[key] for item in configurations)) for key in study.factors}
    full = sources.with_effect(study.full, [item.settings.dataset for item in configurations])
    return Plan(
        name=name,
        study=study.model_copy(update={"factors": as_checked, "full": full}),
        runs=_blocks(configurations, labels, study),
        engine=place.engine,
        engine_reason=place.reason,
        images=place.images,
    )


def _combinations(name: str, study: Study) -> Iterator[Settings]:
    """Yield the checked settings of each combination of levels."""
    base = {key: value for key, value in study.model_dump().items() if key in Settings.model_fields}
    for levels in itertools.product(*study.factors.values()):
        yield check_settings(with_values(base, dict(zip(study.factors, levels, strict=True))), f"study {name}")


def _configuration(
    study: str,
    settings: Settings,
    factors: list[str],
    place: Place,
    absent: Mapping[str, str | None],
    counts: Mapping[str, int],
    earlier: Plan | None,
) -> Configuration:
    """Return the configuration with these settings: its processes counted, its data and weights known by their keys.

    Raise :class:`StudyError` if the data, the processes, the batch size or the model do not allow it.
    """
    dataset_id, train_images = _dataset(settings)
    before = _processes_before(earlier, {key: get(settings, key) for key in factors})
    settings, trouble = process_count.resolve(settings, counts.get(settings.device, 0), study, train_images, before)
    preflight.check_batch_size(settings, train_images, study)
    own_model.check(settings.model.name, Path(), place.engine)
    weights_id = _weights(settings, study)
    identity = keys.run_identity(settings, dataset_id, weights_id, place.engine, place.image(settings.device))
    return Configuration(
        factors={key: get(settings, key) for key in factors},  # as checked: 1 may have become 1.0
        settings=settings,
        dataset=dataset_id,
        weights=weights_id,
        key=digest(identity),
        unavailable=absent.get(settings.device) or trouble or _not_on_this_device(settings),
    )


def _check_curve(name: str, study: Study) -> None:
    """Raise :class:`StudyError` if the curve's horizontal axis has a level that is not a number."""
    if study.curve and not all(type(level) in (int, float) for level in study.factors[study.curve.x]):
        raise StudyError(
            f"study {name}: curve.x: {study.curve.x!r} has levels that are not numbers: {study.factors[study.curve.x]}"
        )


def _blocks(configurations: Sequence[Configuration], labels: Sequence[str], study: Study) -> list[Run]:
    """Return the runs: in each block every configuration once, in the block's own seeded order."""
    runs: list[Run] = []
    for block in range(1, study.replicates + 1):
        order = list(range(len(configurations)))
        random.Random(f"{study.seed}/{block}").shuffle(order)
        for index in order:
            values = vars(configurations[index])
            runs.append(Run(name=f"{labels[index]}-r{block}", block=block, position=len(runs) + 1, **values))
    return runs


def read_all(selection: Selection, folder: Path) -> dict[str, Study]:
    """Return every selected study by its name."""
    return {name: read_study(name, folder, selection) for name in selection.studies}


def plan_all(
    studies: dict[str, Study],
    place: Place,
    absent: dict[str, str | None],
    counts: Mapping[str, int] | None = None,
    earlier: Mapping[str, Plan] | None = None,
) -> list[Plan]:
    """Return the plan of each study. ``earlier`` holds the last plan of each study that has one."""
    return [make_plan(name, study, place, absent, counts, (earlier or {}).get(name)) for name, study in studies.items()]


def _processes_before(earlier: Plan | None, factors: dict[str, Any]) -> int | None:
    """Return the number of processes that ``earlier`` gives the run with these levels. None if it has no such run.

    None also if the number of processes is itself a factor: the earlier plan then holds numbers, and no longer says
    which of them was ``auto``.
    """
    like = next((run.settings.training for run in earlier.runs if run.factors == factors), None) if earlier else None
    return None if like is None or like.processes == "auto" else like.processes


def _not_on_this_device(settings: Settings) -> str | None:
    """Return the reason why no machine can make a run with these settings. None if one could."""
    precision = settings.inference.precision
    if settings.task == "inference" and settings.device != "cpu" and precision in ON_A_CPU_ALONE:
        return f"inference.precision {precision} is executed by ONNX Runtime, on a CPU only"
    return None


def _dataset(settings: Settings) -> tuple[str, int]:
    dataset = settings.dataset
    outlook = sources.look(dataset)
    return sources.name_of(dataset, outlook.files), outlook.train_images


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
        identity["weights"], label = stat_of(path), "file"
    # The decision tries the model. For a user's own model, the images that it is tried on are part of the identity.
    # All sizes of image share one decision for a torchvision model, or one level might start from ImageNet's weights
    # and another from random ones.
    images = settings.dataset
    if code := own_model.sources(name, Path()):
        identity["code"] = own_model.code_sha256(code)
        identity["images"] = [sources.look(images).classes, images.channels, images.image_size]
    return f"{slug(name)}-{label}.{digest(identity)}"


def _existing_file(given: str) -> Path | None:
    try:
        path = Path(given).expanduser()
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # a name that is too long, a user that does not exist
        return None
