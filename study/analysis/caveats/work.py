"""Settings that do not do the same work, or not under the same clock."""

from collections.abc import Iterator
from typing import Literal, Self

import pandas as pd
from pydantic import Field

from study.analysis.answers.group import Group
from study.analysis.caveats.base import OfSetting, OneCaveat, Seen, means, of_levels, spans
from study.analysis.stats.ratios import CIRCUMSTANCES
from study.analysis.words import device_words, listed, short, short_key
from study.artifacts.setting import Setting
from study.config.study import Study

WAITING_LIMIT = 0.5
SHORT_LIMIT = 0.5
"""Share of steady steps in a time, below which more images would give other ratios."""
PREFETCHED = 2
"""Batches that a worker of torch's loader makes ahead where nothing else is set."""
LOADER = "loader.kind"
BATCH = "training.batch_size"


class DecodedBefore(OneCaveat):
    """Some settings have their images on the device before the clock starts; the others decode them in every epoch."""

    kind: Literal["decoded_before"] = "decoded_before"
    prepared: list[OfSetting]
    """Median seconds of the preparation before the clock, of each setting whose images are on the device: the decoding,
    and the building of the loader."""
    EFFECT = "Part of the gain is work that their clock does not count."
    ADVICE = "Take it for images that, decoded, fit into the device's memory and are trained on for many epochs."
    IF = "Counted"

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        kinds = {str(kind) for kind in seen.usable.get(LOADER, [])} - {"alone"}
        if LOADER not in seen.study.factors or "device" not in kinds or len(kinds) < 2:
            return
        prepared = []
        for group in seen.fitted:
            mine = group.clean[(group.clean[LOADER] == "device") & group.clean["setup_seconds"].notna()]
            prepared += [
                OfSetting(setting=group.levels[str(level)].within(group.setting), value=float(rows.median()))
                for level, rows in mine.groupby("level", sort=False)["setup_seconds"]
            ]
        yield cls(prepared=prepared)

    def text(self) -> str:
        """Return what the clock leaves out, and how long it takes."""
        took = f": up to {short(max(one.value for one in self.prepared))} s are not counted" if self.prepared else ""
        return f"With images on the device, decoding is off the clock{took}"

    def applied(self, group: Group) -> dict[str, float] | None:
        """Return the means with the preparation counted."""
        extra = of_levels(group, self.prepared)
        return {label: time + extra.get(label, 0.0) for label, time in means(group).items()} if extra else None


class ShortJob(OneCaveat):
    """Steady steps take the smaller part of the time: with more images an epoch, settings compare otherwise.

    More epochs alone do not change that where each starts the loader's workers anew.
    """

    kind: Literal["short_job"] = "short_job"
    shares: list[OfSetting]
    """Share of each setting's time that its images would take at the steady rate."""
    prefetched: bool = False
    """Whether workers may hold a whole epoch ready: its steps then say nothing of the loader's rate."""
    EFFECT = "A larger dataset weighs start-up, waiting and validation otherwise."
    ADVICE = "Measure as many images as yours."
    IF = "With many more images"

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        if seen.study.total not in ("fit_seconds", "blog_seconds", "train_seconds") or len(seen.fitted) < 2:
            return
        shares, ahead = [], seen.study.loader.prefetch_factor or PREFETCHED
        for fit in seen.fitted:
            steady = fit.clean["images_processed"] / fit.clean["steady_images_per_second"]
            shares += [
                OfSetting(
                    setting=fit.levels[str(level)].within(fit.setting), value=seconds / fit.times[str(level)].value
                )
                for level, seconds in steady.groupby(fit.clean["level"], sort=False).median().dropna().items()
            ]
        if shares and min(one.value for one in shares) < SHORT_LIMIT:
            runs = pd.concat([fit.clean for fit in seen.fitted])
            ready = runs["workers"] * ahead * runs["global_batch_size"]
            yield cls(shares=shares, prefetched=bool((ready >= runs["images_per_epoch"]).any()))

    def text(self) -> str:
        """Return the share of steady steps."""
        return f"The job is short: steady steps are {spans([one.value for one in self.shares])} of the time"

    def applied(self, group: Group) -> dict[str, float] | None:
        """Return what the images of the job take at the steady rate; None where the workers may hold them ready."""
        if self.prefetched:
            return None
        shares = of_levels(group, self.shares)
        return {label: seconds * shares[label] for label, seconds in means(group).items() if label in shares} or None


class UnequalCircumstances(OneCaveat):
    """The settings on one device had different numbers of CPU threads or of loader workers, and no factor says so."""

    kind: Literal["unequal_circumstances"] = "unequal_circumstances"
    what: Literal["threads", "workers"]
    device: str
    factor: str | None = Field(description="The factor whose levels had one number each; null where there is none.")
    counts: dict[str, int] = Field(description="By level of that factor; without one by `fewest` and `most`.")
    EFFECT = "A difference between settings with unequal numbers may come from the numbers."
    ADVICE = "Give all settings one number (`training.threads`, `loader.workers`), and start again."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        kinds: tuple[Literal["threads", "workers"], ...] = ("threads", "workers")
        for what in kinds:
            column, own = CIRCUMSTANCES[what]
            if set(own) & set(seen.study.factors):
                continue
            for device, rows in seen.usable.dropna(subset=[column]).groupby("device", sort=False):
                if rows[column].nunique() > 1:
                    factor, counts = _told_apart(seen.study, rows, column)
                    yield cls(what=what, device=str(device), factor=factor, counts=counts)

    def text(self) -> str:
        """Return the numbers, by the level that they belong to."""
        name = {"threads": "CPU threads", "workers": "loader workers"}[self.what]
        if self.factor is None:
            told = f"{self.counts['fewest']} to {self.counts['most']}"
        else:
            told = listed([f"{count} with {short_key(self.factor)} {level}" for level, count in self.counts.items()])
        return f"Unequal numbers of {name} on {device_words(self.device, article=True)}: {told}"


def _told_apart(study: Study, rows: pd.DataFrame, column: str) -> tuple[str | None, dict[str, int]]:
    """Return the factor whose levels have one value each, with these; without one the smallest and the largest."""
    for key in study.compared:
        values = rows.groupby(key, sort=False)[column].agg(["min", "max"])
        if (values["min"] == values["max"]).all():
            return key, {str(level): int(value) for level, value in values["min"].items()}
    return None, {"fewest": int(rows[column].min()), "most": int(rows[column].max())}


class UnequalWork(OneCaveat):
    """The settings train on different numbers of images."""

    kind: Literal["unequal_work"] = "unequal_work"
    least_images: int
    most_images: int
    causes: list[Literal["epochs", "data", "partial_batch"]]
    """What differs: the number of epochs, the data set's images, or an epoch's images of equal data."""
    EFFECT = "A time compares whole schedules, and not the speed of equal steps."
    ADVICE = "Choose batch sizes that divide the training set, or compare images/s."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        usable = seen.usable[seen.usable["reached_target"].isna()]
        images, of_an_epoch = usable["images_processed"], usable["images_per_epoch"]
        if images.nunique() > 1:
            found: dict[Literal["epochs", "data", "partial_batch"], bool] = {
                "epochs": (images / of_an_epoch).round(6).nunique() > 1,
                "data": usable["train_images"].nunique() > 1,
                "partial_batch": bool((of_an_epoch.groupby(usable["train_images"]).nunique() > 1).any()),
            }
            causes = [cause for cause, differs in found.items() if differs]
            yield cls(least_images=int(images.min()), most_images=int(images.max()), causes=causes)

    def text(self) -> str:
        """Return the numbers, and why they differ."""
        names = {"epochs": "epochs", "data": "data sets", "partial_batch": "last partial batches"}
        why = f" (unequal {listed([names[cause] for cause in self.causes])})" if self.causes else ""
        return f"Settings train on {self.least_images} to {self.most_images} images{why}"


class WaitsForData(OneCaveat):
    """Settings that wait for data at least half of their training, validation apart."""

    kind: Literal["waits_for_data"] = "waits_for_data"
    settings: list[Setting]
    of: int = Field(description="Number of all settings that train.")
    EFFECT = "There the times are the loader's more than the device's."
    ADVICE = "Use more `loader.workers`, or `loader.kind: device`."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        every = [(group, level, level.setting.within(group.setting)) for group in seen.groups for level in group.levels]
        known = [
            (seen.setting(group, level.setting), level.data_wait_share)
            for group, level, setting in every
            if level.data_wait_share is not None and setting.levels.get(LOADER) != "alone"
        ]
        if waiting := [setting for setting, share in known if share >= WAITING_LIMIT]:
            yield cls(settings=waiting, of=len(known))

    def text(self) -> str:
        """Return how many wait."""
        return f"Waiting for data is half of the training or more in {len(self.settings)} of {self.of} settings"


class FewSteps(OneCaveat):
    """Batch sizes with one step in an epoch, or without a step after the warm-up."""

    kind: Literal["few_steps"] = "few_steps"
    batch_sizes: list[int]
    TEXT = "Too few steps to become steady at batch size {batch_sizes}"
    EFFECT = "There is no steady step time, and the time is mostly that of starting."
    ADVICE = "Train longer, on more images or with smaller batches."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        rows = seen.usable  # inference takes no training steps
        bare = (rows[BATCH] >= rows["train_images"]) | (rows["step_seconds"].isna() & rows["steps"].notna())
        if bare.any():
            yield cls(batch_sizes=[int(size) for size in sorted(set(rows.loc[bare, BATCH]))])


Work = DecodedBefore | ShortJob | UnequalCircumstances | UnequalWork | WaitsForData
"""All but :class:`FewSteps`, which is the least important caveat and comes after those of the other files."""
