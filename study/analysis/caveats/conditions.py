"""What the times of settings are worth: whether these learned, and what their runs had beside their
settings and did not have alike: the machine, the starts, the weights, and images that were decoded
before the clock.
"""

import re
from collections.abc import Iterator
from typing import Literal, Self

import numpy as np
from scipy import special

from study.analysis.answers.group import Group
from study.analysis.caveats.base import AGAIN, MORE, OfSetting, OneCaveat, Seen, few, spans
from study.analysis.stats.log_model import SIGNIFICANCE
from study.analysis.stats.mixed_model import codes
from study.analysis.stats.noise import FEWEST, ROUNDING, within_blocks
from study.analysis.stats.usable import CHANGE_LIMIT, REFERENCE_COLUMNS
from study.analysis.words import agreeing, device_words, place_words, short
from study.artifacts.setting import Setting
from study.base.errors import quantity
from study.base.strict import Strict

CARRIED = 0.01
"""p below which a setting is said to change the runs that follow: 100% of simulated studies of five
blocks, noise of 1% and a change of 10% (three blocks: 67%), and 1% of those without a change."""
MOST_CARRYING = 50
"""Settings up to which one follows another often enough to tell."""


class Unlearned(Strict):
    """A level that is not shown to have learned as well as the others."""

    level: Setting
    setting: Setting
    """The level after its group, where the study has several groups."""
    reason: Literal["at_chance", "below_best", "unclear"]
    """`unclear`: its runs' accuracies differ too much to tell."""
    accuracy: float | None
    """Mean over its runs, 0 to 1; null where it is told by the loss."""


class NotLearned(OneCaveat):
    """Settings that are out of the ranking because they are not shown to have learned as well as
    the others."""

    kind: Literal["not_learned"] = "not_learned"
    levels: list[Unlearned]
    everywhere: bool
    """Whether they are the same levels in each group of the study."""
    EFFECT = "Speed counts only at equal learning."
    ADVICE = "Let them train for longer, or at another learning rate."

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        found, labels = [], set()
        for group, told in zip(seen.fitted, seen.groups, strict=True):
            lost = [
                Unlearned(
                    level=level.setting,
                    setting=seen.named(group, level.setting),
                    reason=one.reason,
                    accuracy=one.accuracy,
                )
                for level in told.levels
                if (one := group.learning.get(level.label))
                and one.reason in ("at_chance", "below_best", "unclear")
            ]
            found += lost
            labels.add(frozenset(one.level.label for one in lost))
        if found:
            yield cls(levels=found, everywhere=len(labels) == 1)

    def text(self) -> str:
        """Return which settings are out of the ranking, and the accuracies that they reach."""
        names = dict.fromkeys(
            one.level.label if self.everywhere else one.setting.label for one in self.levels
        )
        verb = "did not learn as well"
        if all(one.reason == "unclear" for one in self.levels):
            verb = f"{agreeing(len(names), 'is', 'are')} not shown to have learned"
        known = [one.accuracy for one in self.levels if one.accuracy is not None]
        reached = spans(known) if known else "by their loss"
        return f"{few(list(names), 'setting')} {verb} ({reached}): out of the ranking"


class Missed(Strict):
    """The runs of one setting that did not reach the target accuracy, or that their time limit
    ended."""

    setting: Setting
    missed: int
    runs: int
    """These and its successful runs."""


class CensoredSettings(OneCaveat):
    """Settings with runs that ended before they were done: the time of the others is that of the
    lucky ones."""

    kind: Literal["censored"] = "censored"
    missed: list[Missed]
    EFFECT = "These settings are out of the ranking: their times are those of lucky runs."
    ADVICE = "Raise `training.epochs` or `limits.timeout_seconds`."

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        missed = []
        for group in seen.fitted:
            for level, one in group.censored.items():
                setting = seen.named(group, group.levels[level])
                missed.append(Missed(setting=setting, missed=one.missed, runs=one.runs))
        if missed:
            yield cls(missed=missed)

    def text(self) -> str:
        """Return how many runs of which settings missed it."""
        lost, runs = sum(one.missed for one in self.missed), sum(one.runs for one in self.missed)
        who = few([one.setting.label for one in self.missed], "setting")
        return f"{lost} of {runs} runs of {who} missed the target or their time limit"


class MayLearnLess(OneCaveat):
    """Levels tied for the fastest whose accuracy lies below the best one's by more than the margin,
    if not by noise."""

    kind: Literal["may_learn_less"] = "may_learn_less"
    group: Setting
    levels: list[OfSetting]
    """Their mean accuracies, 0 to 1."""
    best: OfSetting
    where: Setting | None
    """The group's short setting; null where it is alone."""
    EFFECT = "It is not shown beyond chance: they stay in the ranking."
    ADVICE = MORE

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        for group in seen.groups:
            known = [
                OfSetting(setting=level.setting, value=level.accuracy)
                for level in group.levels
                if level.accuracy is not None and level.label not in group.ineligible
            ]
            if not known:
                continue
            best = max(known, key=lambda one: one.value)
            tied = [
                one for one in known if one.setting.label in (*group.indistinguishable, group.best)
            ]
            less = [one for one in tied if best.value - one.value > seen.study.learning_margin]
            if less:
                yield cls(
                    group=group.setting, levels=less, best=best, where=seen.names.get(group.setting)
                )

    def text(self) -> str:
        """Return both accuracies."""
        where = f"{place_words(self.where)}: " if self.where else ""
        names = [one.setting.label for one in self.levels]
        reached = spans([one.value for one in self.levels])
        best = f"{self.best.value:.0%} at {self.best.setting.label}"
        return f"{where}{few(names, 'setting')} may learn less, {reached} against {best}"

    def applied(self, group: Group) -> dict[str, float] | None:
        """Return the means without these levels."""
        out = {one.setting.label for one in self.levels}
        left = {label: seconds for label, seconds in group.seconds.items() if label not in out}
        return left if group.setting == self.group else None


class MachineChanged(OneCaveat):
    """A device's reference workload changed during the study; that of its CPUs, where it changed
    more."""

    kind: Literal["machine_changed"] = "machine_changed"
    device: str
    host: bool
    """Whether it is the reference workload of the CPUs beside the device."""
    fastest_seconds: float
    slowest_seconds: float
    EFFECT = "Small differences between settings may be the machine's."
    ADVICE = AGAIN

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        for device, rows in seen.usable.groupby("device", sort=False):
            known = rows[[*REFERENCE_COLUMNS]]
            changes = (known.max() / known.min()).dropna()
            if changes.empty:
                continue
            times = known[str(changes.idxmax())]
            if times.max() >= CHANGE_LIMIT * times.min():
                yield cls(
                    device=str(device),
                    host=times.name == "host_reference_seconds",
                    fastest_seconds=float(times.min()),
                    slowest_seconds=float(times.max()),
                )

    def text(self) -> str:
        """Return how much the speed changed."""
        whose = f"{'the CPUs beside ' * self.host}{device_words(self.device, article=True)}"
        change = self.slowest_seconds / self.fastest_seconds
        return f"The speed of {whose} changed {change:.1f}-fold"


class CarryOver(OneCaveat):
    """A setting after which runs take longer, or shorter: it leaves the machine hot, or its caches
    filled."""

    kind: Literal["carry_over"] = "carry_over"
    after: Setting
    """The setting after its group, where the study has several."""
    times: float
    """Time of a run after it over that of the same run after another."""
    EFFECT = "A setting seems slower that followed it more often."
    ADVICE = MORE

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        """Yield the setting after which log times are shown to differ most from those after others:
        by a regression with levels and blocks, at 1% for all settings at once (Bonferroni)."""
        frame, runs, settings = seen.frame, seen.usable, dict[str, Setting]()
        for group in seen.fitted:
            for label, level in group.levels.items():
                settings[f"{group.setting.label}/{label}"] = seen.named(group, level)
        names = frame["group"] + "/" + frame["level"]
        ran = frame[frame["started"].notna()].sort_values("started", kind="stable")
        before = names[ran.index].groupby(ran["session"]).shift().reindex(runs.index)
        met = {name: before == name for name in settings if (before == name).any()}
        if not 1 < len(met) <= MOST_CARRYING:
            return
        found = within_blocks(
            np.column_stack([np.log(runs[seen.study.total].astype(float)), *met.values()]),
            codes(names[runs.index].tolist()),
            codes(runs["session_block"].tolist()),
        )
        logs, left = found.residuals[:, 0], found.residuals[:, 1:]
        sizes = np.maximum((left**2).sum(0), ROUNDING)
        # of what is left of the logarithms, explained by each: a beta variable
        shares = (logs @ left) ** 2 / sizes / max(logs @ logs, ROUNDING)
        worst = int(shares.argmax())
        p = special.betainc(found.degrees / 2 - 0.5, 0.5, abs(1 - shares[worst]))
        if len(met) * p < CARRIED:
            times = float(np.exp(logs @ left[:, worst] / sizes[worst]))
            yield cls(after=settings[[*met][worst]], times=times)

    def text(self) -> str:
        """Return by how much it changes the run that follows."""
        change = f"{short(100 * abs(self.times - 1))}% {'longer' if self.times > 1 else 'less'}"
        return f"Runs after {self.after.label} take {change}"


class Starts(OneCaveat):
    """The starts of the pipeline from which the runs come, on one or several machines."""

    kind: Literal["starts"] = "starts"
    starts: int
    """A start that had several machines counts as one on each of them."""
    machines: int
    shifted: list[Setting] = []
    """Groups whose levels a start shifts by themselves."""

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        starts = seen.recorded["session"].nunique()
        shifted = [
            seen.names.get(group.setting, group.setting)
            for group in seen.fitted
            if group.model
            and (one := group.model.starts)
            and one.p is not None
            and one.p < SIGNIFICANCE
        ]
        if starts:
            yield cls(
                starts=starts, machines=max(1, seen.recorded["node"].nunique()), shifted=shifted
            )

    def text(self) -> str:
        """Return how many starts there are."""
        if self.starts == 1:
            return "All runs are of one start"
        where = f" on {quantity(self.machines, 'machine')}" if self.machines > 1 else ""
        shifted = "; they shift settings by themselves" if self.shifted else ""
        return f"The runs come from {quantity(self.starts, 'start')}{where}{shifted}"

    def effect(self) -> str:
        """Return of what the intervals tell."""
        if told := {1: "this start", 2: "these two starts"}.get(self.starts):
            return f"Ratios hold in {told}; another may shift a setting by itself."
        return "Times and ratios hold for a further start, too."

    def advice(self) -> str:
        """Return what to do."""
        return "Raise `replicates`, and start again on another day." if self.starts < FEWEST else ""


LOADER = "loader.kind"


class DecodedBefore(OneCaveat):
    """Some settings have their images on the device before the clock starts; the others decode them
    in every epoch."""

    kind: Literal["decoded_before"] = "decoded_before"
    prepared: list[OfSetting]
    """Median seconds of the preparation before the clock, of each setting whose images are on the
    device: the decoding, and the building of the loader."""
    EFFECT = "Part of the gain is work that their clock does not count."
    ADVICE = (
        "Take it for images that, decoded, fit into the device's memory and are trained "
        "on for many epochs."
    )
    IF = "Counted"

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        kinds = {str(kind) for kind in seen.usable.get(LOADER, [])}
        if LOADER not in seen.study.factors or "device" not in kinds or len(kinds) < 2:
            return
        prepared = []
        for group in seen.fitted:
            mine = group.clean[
                (group.clean[LOADER] == "device") & group.clean["setup_seconds"].notna()
            ]
            prepared += [
                OfSetting(
                    setting=group.levels[str(level)].within(group.setting),
                    value=float(rows.median()),
                )
                for level, rows in mine.groupby("level", sort=False)["setup_seconds"]
            ]
        yield cls(prepared=prepared)

    def text(self) -> str:
        """Return what the clock leaves out, and how long it takes."""
        told = "With images on the device, decoding is off the clock"
        if not self.prepared:
            return told
        return f"{told}: up to {short(max(one.value for one in self.prepared))} s are not counted"

    def applied(self, group: Group) -> dict[str, float] | None:
        """Return the means with the preparation counted."""
        known = {one.setting: one.value for one in self.prepared}
        every = {level.label: level.setting.within(group.setting) for level in group.levels}
        extra = {label: known[setting] for label, setting in every.items() if setting in known}
        if not extra:
            return None
        return {label: time + extra.get(label, 0.0) for label, time in group.seconds.items()}


class UnknownWork(OneCaveat):
    """A command that says nothing of the worth of what it did."""

    kind: Literal["unknown_work"] = "unknown_work"
    EFFECT = "A setting that is faster may do less, and nothing here would show it."
    ADVICE = "Name the line that tells: `output.accuracy`, or `output.loss`."

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        if seen.study.command and not (seen.study.output.accuracy or seen.study.output.loss):
            yield cls()

    def text(self) -> str:
        """Return what the command does not say."""
        return "The command prints neither an accuracy nor a loss"


class OwnClock(OneCaveat):
    """Times that a command measured itself."""

    kind: Literal["own_clock"] = "own_clock"
    EFFECT = "Nothing here shows what its clock leaves out, such as a wait for the GPU."
    ADVICE = "Our own clock's times stand beside them: `time: command_seconds`."

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        if seen.study.total == "printed_seconds":
            yield cls()

    def text(self) -> str:
        """Return whose clock it is."""
        return "The times are those that the command printed"


SHORT_COMMAND_SECONDS = 0.2
"""A command that is shorter has a start that our clock counts by a tenth and more."""


class ShortCommand(OneCaveat):
    """A command so short that starting it is a part of its time."""

    kind: Literal["short_command"] = "short_command"
    seconds: float
    """Median over the runs of the fastest setting."""
    EFFECT = "Starting a process is counted, which takes some milliseconds."
    ADVICE = "Give it more work, or measure it with hyperfine, which is made for such commands."

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        if seen.study.total == "command_seconds" and len(seen.usable):
            seconds = float(seen.usable.groupby("level")["command_seconds"].median().min())
            if seconds < SHORT_COMMAND_SECONDS:
                yield cls(seconds=seconds)

    def text(self) -> str:
        """Return how short it is."""
        return f"The command takes {short(self.seconds)} s"


UNKNOWN_SERVER = (
    "Name or service not known|Temporary failure in name resolution|nodename nor "
    "servname provided.*"
)
SERVER_NOT_FOUND = "the server's name was not found, as without a network"


class RandomWeights(OneCaveat):
    """Runs that start from random weights, for one reason, because the pretrained ones were not to
    be had."""

    kind: Literal["random_weights"] = "random_weights"
    reason: str
    EFFECT = "Times are valid; accuracies are not those of transfer learning."
    ADVICE = "`python -m study retry STUDY --weights`"

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        weights = [record.weights for record in seen.records.included.values()]
        for reason in sorted({one.reason for one in weights if one and one.fell_back}):
            without_number = re.sub(r"\[Errno -?\d+\] ", "", reason)
            yield cls(reason=re.sub(UNKNOWN_SERVER, SERVER_NOT_FOUND, without_number))

    def text(self) -> str:
        """Return why the weights are random."""
        return f"Training starts from random weights: {self.reason}"
