"""From a study to its runs: factors x replicates, their names, keys and seeded order."""

import itertools
import json
import random
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from study.artifacts.plan import Plan
from study.artifacts.prepared import ImageRequest
from study.artifacts.run import Run, image_name
from study.artifacts.setting import Setting, settings_of, slug
from study.base.errors import StudyError
from study.base.files import code_sha256, digest, stat_of
from study.config import own_model
from study.config.effect import check_factors
from study.config.load import check_settings, read_study
from study.config.sections import short_name
from study.config.selection import Selection
from study.config.settings import Settings, get, with_values
from study.config.study import Study
from study.data import sources, splits
from study.host.engine.engine_choice import EngineChoice, named
from study.host.plan import keys, process_count

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
MOST_RUNS = 10**6
"""Ten times what was tried (``benchmarks.many_plans``)."""
ON_A_CPU_ALONE = ("fp32_onnx", "int8")
"""Precisions of inference that this project cannot execute on a GPU."""


@dataclass(frozen=True)
class Configuration:
    """The values that the runs of one setting share: each replicate is a run of its own."""

    settings: Settings
    dataset: str
    weights: str
    key: str
    unavailable: str | None


def make_plan(
    name: str,
    study: Study,
    choice: EngineChoice,
    absent: dict[str, str | None],
    counts: Mapping[str, int | None] | None = None,
    earlier: Plan | None = None,
    machines: Collection[str] | None = None,
) -> Plan:
    """Return the plan of ``study``, with every run checked as far as possible without opening an image.

    ``absent`` holds for each device the reason why it cannot be used, or None if it can. ``counts`` is the number of
    units of each device (default: one of each usable device), None where it is unknown, as on other machines.
    ``earlier`` is the study's last plan: a run whose device is absent takes its number of processes from there.
    ``machines`` are the classes of machines that an executor has; None without one: this machine makes the runs that
    name no class. Raise :class:`StudyError` for a study that cannot be planned.
    """
    counts = counts or {device: int(not reason) for device, reason in absent.items()}
    shared = _Shared(name, choice, _processes_before(earlier), machines)
    combined = list(_combinations(name, study))
    configurations = [_configuration(settings, list(study.factors), shared, absent, counts) for settings, _ in combined]
    _check_curve(name, study)
    check_factors(list(study.factors), [settings for settings, _ in combined], f"study {name}")
    if choice.engine != "none" and len(levels := study.factors.get("process", [])) > 1:
        why = "it has no effect there, where each run is fresh, and has one with container none"
        context = f"with {choice.engine}"
        raise StudyError(source=f"study {name}", key="process", value=levels, context=context, why=why)
    levels = [{key: get(item.settings, key) for key in study.factors} for item in configurations]
    as_checked = {key: list(dict.fromkeys(own[key] for own in levels)) for key in study.factors}  # 1 may be 1.0 now
    full = sources.with_effect(study.full, [item.settings.dataset for item in configurations])
    replicates = [runs for _, runs in combined]
    only = [own | {"replicates": runs} for own, runs in zip(levels, replicates, strict=True)]
    study = study.model_copy(update={"factors": as_checked, "full": full, "only": only if study.only else []})
    return Plan(
        name=name,
        study=study,
        runs=_blocks(configurations, settings_of(study, levels), replicates, study.seed),
        engine=choice.engine,
        engine_reason=choice.reason,
        images=shared.images,
        packages=shared.packages,
    )


def _combinations(name: str, study: Study) -> Iterator[tuple[Settings, int]]:
    """Yield the checked settings of each combination of levels that the study runs, and the number of their runs.

    Raise :class:`StudyError` once these are too many.
    """
    base = {key: value for key, value in study.model_dump().items() if key in Settings.model_fields}
    runs = 0
    for combination in itertools.product(*study.factors.values()):
        levels = dict(zip(study.factors, combination, strict=True))
        runs += (replicates := study.runs_of(levels))
        if runs > MOST_RUNS:
            raise StudyError(f"study {name}: more than {MOST_RUNS} runs, replicates included: fewer can be planned")
        if replicates:
            yield check_settings(with_values(base, levels), f"study {name}"), replicates


class _Shared:
    """What the configurations of one plan share, each of it found once: there may be thousands of configurations."""

    def __init__(
        self, study: str, choice: EngineChoice, processes_before: Mapping[str, int], machines: Collection[str] | None
    ) -> None:
        self.study, self.choice, self.processes_before, self.machines = study, choice, processes_before, machines
        self.code = cache(code_sha256)
        self.packages: dict[str, str] = {}
        self.images: dict[str, ImageRequest] = {str(device): image for device, image in choice.images.items()}
        self._modules: dict[tuple[str, ...], list[str]] = {}
        self._installed: dict[tuple[str, ...], dict[str, str]] = {}
        self._datasets: dict[str, tuple[str, int]] = {}
        self._weights: dict[tuple[str, str, int], str] = {}

    def dataset(self, settings: Settings) -> tuple[str, int]:
        """Return the name of the data and the size of the training set."""
        return _once(self._datasets, settings.dataset.model_dump_json(), lambda: _dataset(settings))

    def image(self, settings: Settings) -> str | None:
        """Return the identity of the image of a run, which tells it from other images. None on the host."""
        name = image_name(settings)
        if settings.image is not None and self.images:
            base = self.images[settings.device].base_image
            _once(self.images, name, lambda: named(str(settings.image), settings.device, "image", base))
        return self.images[name].identity if name in self.images else self.choice.inside

    def installed(self, settings: Settings) -> dict[str, str]:
        """Return the versions of the packages that a run imports on the host, and note them; none in an image."""
        if self.choice.engine != "none":
            return {}
        kind = (settings.model.name, settings.dataset.source, settings.loader.decoder, *keys.measured_code(settings))
        modules = _once(self._modules, kind, lambda: keys.imported_modules(settings))
        found = _once(self._installed, tuple(modules), lambda: keys.installed(modules))
        self.packages |= found
        return found

    def weights(self, settings: Settings) -> str:
        """Return the name of the decision about the weights, of a model that the runs will find."""
        key = (settings.model.model_dump_json(), settings.dataset.model_dump_json(), settings.seed)
        return _once(self._weights, key, lambda: self._checked_weights(settings))

    def _checked_weights(self, settings: Settings) -> str:
        own_model.check(settings.model.name, Path(), self.choice.engine)
        return _weights(settings, self.study)


def _once(known: dict[Key, Value], key: Key, find: Callable[[], Value]) -> Value:
    if key not in known:
        known[key] = find()
    return known[key]


def _configuration(
    settings: Settings,
    factors: list[str],
    shared: _Shared,
    absent: Mapping[str, str | None],
    counts: Mapping[str, int | None],
) -> Configuration:
    """Return the configuration with these settings: its processes counted, its data and weights known by their keys.

    Raise :class:`StudyError` if the data, the processes, the batch size or the model do not allow it.
    """
    study, choice = shared.study, shared.choice
    dataset_id, train_images = shared.dataset(settings)
    before = shared.processes_before.get(_levels({key: get(settings, key) for key in factors}))
    settings, trouble = process_count.resolve(settings, counts.get(settings.device, 0), study, train_images, before)
    splits.check_batch_size(settings, train_images, study)
    weights_id = shared.weights(settings)
    code, image = shared.code(tuple(keys.measured_code(settings))), shared.image(settings)
    packages = shared.installed(settings)
    identity = keys.run_identity(settings, dataset_id, weights_id, code, packages, choice.engine, image)
    return Configuration(
        settings=settings,
        dataset=dataset_id,
        weights=weights_id,
        key=digest(identity),
        unavailable=absent.get(settings.device)
        or trouble
        or _not_on_this_device(settings)
        or _not_on_this_machine(settings, shared),
    )


def _check_curve(name: str, study: Study) -> None:
    """Raise :class:`StudyError` if the curve's horizontal axis has a level that is not a number."""
    if study.curve and not all(type(level) in (int, float) for level in study.factors[study.curve.x]):
        why = f"its levels are not numbers: {study.factors[study.curve.x]}"
        raise StudyError(source=f"study {name}", key="curve.x", value=study.curve.x, why=why)


def _blocks(
    configurations: Sequence[Configuration], settings: Sequence[Setting], replicates: Sequence[int], seed: int
) -> list[Run]:
    """Return the runs: in each block every configuration that has a run left, in the block's own seeded order.

    Two alternate: drawn orders of three blocks agree in one study of four, and then a slope within blocks is theirs.
    """
    # Checked once: a replicate differs in three values alone, and all share one set of the names of what was given.
    pairs = zip(configurations, settings, strict=True)
    first = [dict(Run(name="", setting=own, block=0, position=0, **vars(shared))) for shared, own in pairs]
    given = {*Run.model_fields}
    runs: list[Run] = []
    for block in range(1, max(replicates, default=0) + 1):
        order = [index for index, count in enumerate(replicates) if count >= block]
        random.Random(f"{seed}/{1 if len(order) == 2 else block}").shuffle(order)
        if len(order) == 2 and block % 2 == 0:
            order.reverse()
        for index in order:
            own = {"name": f"{settings[index].short}-r{block}", "block": block, "position": len(runs) + 1}
            runs.append(Run.model_construct(given, **(first[index] | own)))
    return runs


def read_all(selection: Selection, folders: Sequence[Path]) -> dict[str, Study]:
    """Return every selected study by its name; the first of the ``folders`` that holds its file counts."""
    return {name: read_study(name, folders, selection) for name in selection.studies}


def plan_all(
    studies: dict[str, Study],
    choice: EngineChoice,
    absent: dict[str, str | None],
    counts: Mapping[str, int | None] | None = None,
    earlier: Mapping[str, Plan] | None = None,
    machines: Collection[str] | None = None,
) -> list[Plan]:
    """Return the plan of each study. ``earlier`` holds the last plan of each study that has one."""
    before = earlier or {}
    return [
        make_plan(name, study, choice, absent, counts, before.get(name), machines) for name, study in studies.items()
    ]


def _processes_before(earlier: Plan | None) -> dict[str, int]:
    """Return the number of processes that ``earlier`` gives the runs with each combination of levels.

    If the number is itself a factor, no level ``auto`` is among them: the earlier plan then holds numbers, and no
    longer says which of them was ``auto``.
    """
    found = [
        (_levels(run.setting.levels), run.settings.training.processes) for run in (earlier.runs if earlier else [])
    ]
    return {levels: processes for levels, processes in found if processes != "auto"}


def _levels(factors: dict[str, Any]) -> str:
    """Return a combination of levels as text."""
    return json.dumps(factors, sort_keys=True)


def _not_on_this_device(settings: Settings) -> str | None:
    """Return the reason why no machine can make a run with these settings. None if one could."""
    precision = settings.inference.precision
    if settings.task == "inference" and settings.device != "cpu" and precision in ON_A_CPU_ALONE:
        return f"inference.precision {precision} is executed by ONNX Runtime, on a CPU only"
    return None


def _not_on_this_machine(settings: Settings, shared: _Shared) -> str | None:
    """Return why a run that names an image, or a class of machine, cannot be made without an engine, or an executor.

    None if it can. Raise :class:`StudyError` if the executor's machines have no such class.
    """
    if settings.image is not None and not shared.images:
        return f"its image needs a container engine, and runs execute on the host ({shared.choice.reason})"
    if settings.machine is None:
        return None
    if shared.machines is None:
        return f"machine {settings.machine} is to be had from an executor, and this start has none"
    if settings.machine not in shared.machines:
        allowed = shared.machines or "none: give `machines` in the configuration"
        raise StudyError(source=f"study {shared.study}", key="machine", value=settings.machine, allowed=allowed)
    return None


def _dataset(settings: Settings) -> tuple[str, int]:
    dataset = settings.dataset
    info = sources.inspect(dataset)
    return sources.name_of(dataset, info.files), info.train_images


def _weights(settings: Settings, study: str) -> str:
    name, weights = settings.model.name, settings.model.weights
    identity: dict[str, Any] = {"model": name, "weights": weights}
    label = weights
    if weights == "none":
        identity["seed"] = settings.seed
    elif weights != "imagenet":
        path = _existing_file(weights)
        if path is None:
            key, allowed = "model.weights", "imagenet, none, a path"
            raise StudyError(source=f"study {study}", key=key, value=weights, why="no such file", allowed=allowed)
        identity["weights"], label = stat_of(path), "file"
    # The decision tries the model. For a user's own model, the images that it is tried on are part of the identity.
    # All sizes of image share one decision for a torchvision model, or one level might start from ImageNet's weights
    # and another from random ones.
    images = settings.dataset
    if code := own_model.sha256(name, Path()):
        identity["code"] = code
        identity["images"] = [sources.inspect(images).classes, images.channels, images.image_size]
    return f"{slug(short_name(name))}-{label}.{digest(identity)}"


def _existing_file(given: str) -> Path | None:
    try:
        path = Path(given).expanduser()
        return path if path.is_file() else None
    except (OSError, RuntimeError):  # a name that is too long, a user that does not exist
        return None
