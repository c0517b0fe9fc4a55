"""Runs that failed or were disturbed, and records that are in no number."""

from collections import Counter
from collections.abc import Iterator
from statistics import geometric_mean
from typing import Literal, Self

from study.analysis.answers.group import Group
from study.analysis.caveats.base import AGAIN, MORE, OneCaveat, Seen, few
from study.analysis.stats.usable import counted
from study.analysis.table.exclusions import BY_RULE, FIRST
from study.analysis.words import EVIDENCE, agreeing, listed, short
from study.artifacts.setting import Setting
from study.base.errors import quantity
from study.base.strict import Strict


class ExcludedRun(Strict):
    """A run that is not analysed."""

    setting: Setting
    reason: str
    seconds: float
    mean_seconds: float | None
    """Mean of its setting; null where no run of it counts."""


class ExcludedRuns(OneCaveat):
    """Runs that are kept, shown and not analysed, by the rules that were declared before any
    run."""

    kind: Literal["excluded_runs"] = "excluded_runs"
    runs: list[ExcludedRun]
    of: int
    """Number of successful runs."""
    EFFECT = "They are drawn as crosses, and intervals are wider without them."
    ADVICE = "Raise `replicates`, and start again on a quiet machine."

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        y, found, succeeded = seen.study.total, [], 0
        for group in seen.fitted:
            done = group.part[(group.part["outcome"] == "ok") & group.part[y].notna()]
            left = done[done["excluded"].isin(BY_RULE)]
            succeeded += len(counted(done)) + len(left)
            found += [
                ExcludedRun(
                    setting=seen.named(group, group.levels[run["level"]]),
                    reason=run["excluded"],
                    seconds=run[y],
                    mean_seconds=mean.value if (mean := group.times.get(run["level"])) else None,
                )
                for run in left.to_dict("records")
            ]
        if found:
            yield cls(runs=found, of=succeeded)

    def text(self) -> str:
        """Return the run with its time, or how many there are, and why."""
        run, *others = self.runs
        if others:
            why = "outliers, or the first of a start without a warm-up"
            return f"{len(self.runs)} of {self.of} runs are excluded: {why}"
        usual = f", the others {short(run.mean_seconds)} s" if run.mean_seconds else ""
        why = ", the first of its start" if run.reason == FIRST else ""
        return f"A run of {run.setting.label} took {short(run.seconds)} s{usual}: excluded{why}"


class OutlierRuns(OneCaveat):
    """Outliers of one setting, far from its other runs: each counts, against this setting alone."""

    kind: Literal["outliers"] = "outliers"
    setting: Setting
    outliers: list[float]
    """Seconds of the outliers on the side where they are more."""
    others: list[float]
    """Seconds of the other runs."""
    EFFECT = "Bounds of this setting hold with them and without."
    IF = "Without outliers"
    ADVICE = MORE

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        y = seen.study.total
        for group in seen.fitted:
            outlying = group.clean[group.clean["outlier"] != 0]
            for level, rows in outlying.groupby("level", sort=False):
                slow = (rows["outlier"] > 0).sum() * 2 >= len(rows)
                own = group.clean[group.clean["level"] == level]
                on_side = own["outlier"] == (1 if slow else -1)
                yield cls(
                    setting=seen.named(group, group.levels[str(level)]),
                    outliers=own.loc[on_side, y].tolist(),
                    others=own.loc[~on_side, y].tolist(),
                )

    def text(self) -> str:
        """Return the run beside the others, or the two groups of times with their shares."""
        mean = geometric_mean(self.outliers)
        others = geometric_mean(self.others)
        count = len(self.outliers)
        runs = count + len(self.others)
        if count == 1:
            more = f"{short(mean / others)} times as long: {short(mean)} s, not {short(others)} s"
            return f"One of {runs} runs of {self.setting.label} took {more}"
        times = f"{short(others)} s in {runs - count} runs, {short(mean)} s in {count}"
        return f"The times of {self.setting.label} fall into two groups: {times}"

    def applied(self, group: Group) -> dict[str, float] | None:
        """Return the means without the outliers."""
        without = {
            level.label: level.time_without_outliers
            for level in group.levels
            if level.time_without_outliers
        }
        return group.seconds | without if without else None


class Unsuccessful(OneCaveat):
    """Runs that ended in the same way for the same reason."""

    kind: Literal["unsuccessful"] = "unsuccessful"
    outcome: str
    message: str | None
    runs: list[str]
    EFFECT = "Their settings are known less well, or not at all."
    ADVICE = "See the log of each run; once that is mended: `python -m study retry STUDY`."

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        failed = seen.recorded[~seen.recorded["outcome"].isin(["ok", "refused", "unavailable"])]
        for (outcome, message), rows in failed.groupby(
            ["outcome", "message"], dropna=False, sort=False
        ):
            why = message if isinstance(message, str) else None
            yield cls(outcome=str(outcome), message=why, runs=rows["run"].tolist())

    def text(self) -> str:
        """Return how many ended in which way, and why."""
        how = "ran out of memory" if self.outcome == "out_of_memory" else "failed"
        return f"{few(self.runs, 'run')} {how}: {self.message or 'no reason recorded'}"


class RefusedFiles(OneCaveat):
    """Files that do not fit: records of another plan, schema or checksum, and samples of another
    record."""

    kind: Literal["refused"] = "refused"
    what: Literal["record", "samples", "excluded record"]
    files: list[str]
    reason: str
    """Begins with the key that does not fit."""
    ADVICE = "Move them aside with `python -m study retry STUDY`, then start again."

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        files = seen.frame["run"].astype(str) + "." + seen.frame["key"].astype(str)
        for reason, names in files[seen.frame["outcome"] == "refused"].groupby(
            seen.frame["message"], sort=False
        ):
            yield cls(what="record", files=[f"{name}.json" for name in names], reason=str(reason))
        for reason, names in files.groupby(seen.frame["samples_refused"], sort=False):
            samples = [f"{name}.parquet" for name in dict.fromkeys(names)]
            yield cls(what="samples", files=samples, reason=str(reason))
        for name, reason in seen.records.refused_aside.items():
            yield cls(what="excluded record", files=[name], reason=reason)

    def text(self) -> str:
        """Return which files are not used, and the key that does not fit."""
        return (
            f"{few(self.files, 'file')} {agreeing(len(self.files), 'does', 'do')} not fit: "
            f"{self.reason}"
        )

    def effect(self) -> str:
        """Return what is missing without them."""
        if self.what == "samples":
            return "Times count; memory and energy of these runs are not shown."
        return "They are in no number."


class DisturbedRuns(OneCaveat):
    """Runs during which others crossed a limit of the study's ``evidence``."""

    kind: Literal["disturbed_runs"] = "disturbed_runs"
    kinds: dict[str, int]
    """Number of records that crossed each limit, by its key."""
    runs: list[str]
    measured_again: int
    """Number of runs whose disturbed record was excluded for a second one."""
    disturbed_again: list[str]
    """Runs whose last record is marked, too."""
    ADVICE = AGAIN

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        marked = seen.frame[
            seen.frame["disturbed"].notna() & (seen.frame["excluded"] != "broken block")
        ]
        if marked.empty:
            return
        kinds = marked["disturbed"].str.split("; ").explode()
        first = marked["excluded"] == "disturbed"
        again = set(marked.loc[first, "run"])
        yield cls(
            kinds=dict(sorted(Counter(kinds).items())),
            runs=list(dict.fromkeys(marked["run"])),
            measured_again=len(again),
            disturbed_again=marked.loc[~first & marked["run"].isin(again), "run"].tolist(),
        )

    def text(self) -> str:
        """Return how many were disturbed by what."""
        why = listed([EVIDENCE[kind] for kind in self.kinds])
        again = f"; {self.measured_again} measured again" if self.measured_again else ""
        return f"{quantity(len(self.runs), 'disturbed run')} ({why}){again}"

    def effect(self) -> str:
        """Return whose times may be too long: a second record counts in place of the first."""
        long = len(self.runs) - self.measured_again + len(self.disturbed_again)
        return f"Others may have slowed {quantity(long, 'run')} down." if long else ""
