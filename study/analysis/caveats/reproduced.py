"""Whether two runs of one seed end with the same weights, to the last bit."""

from collections.abc import Iterator
from itertools import combinations
from typing import Literal, Self

from pydantic import Field

from study.analysis.caveats.base import OneCaveat, Seen
from study.analysis.words import listed
from study.artifacts.setting import Setting
from study.base.errors import quantity
from study.base.strict import Strict

TOLD = 3
"""Settings up to this number are told one by one."""


class Repeated(Strict):
    """The pairs of runs of one setting that have one seed and one data set."""

    setting: Setting
    pairs: int
    equal: int = Field(description="Pairs whose trained weights and statistics are equal to the last bit.")
    deterministic: bool


class Reproduced(OneCaveat):
    """The settings of which two runs have one seed, as those of a null control have."""

    kind: Literal["reproduced"] = "reproduced"
    settings: list[Repeated]

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        weights: dict[tuple[str, int, str | None], list[str]] = {}
        settings: dict[str, tuple[Setting, bool]] = {}
        names = {row.run: (group, str(row.level)) for group in seen.fitted for row in group.part.itertuples()}
        for run, record in seen.records.included.items():
            checksum = record.measurement.trained_sha256 if record.measurement else None
            if checksum and run in names:
                group, level = names[run]
                setting = seen.setting(group, group.levels[level])
                settings[setting.label] = setting, record.settings.training.deterministic
                data = record.data.sha256 if record.data else None
                weights.setdefault((setting.label, record.seed, data), []).append(checksum)
        found = []
        for label, (setting, deterministic) in settings.items():
            pairs = [pair for (own, _, _), every in weights.items() if own == label for pair in combinations(every, 2)]
            equal = sum(one == other for one, other in pairs)
            if pairs:
                found.append(Repeated(setting=setting, pairs=len(pairs), equal=equal, deterministic=deterministic))
        if found:
            yield cls(settings=found)

    def text(self) -> str:
        """Return how many pairs are equal, of each setting or of all."""
        lead = "Two runs of one seed end with equal weights, to the last bit,"
        if len(self.settings) <= TOLD:
            told = [f"in {one.equal} of {quantity(one.pairs, 'pair')} ({one.setting.label})" for one in self.settings]
            return f"{lead} {listed(told)}"
        whole = sum(one.equal == one.pairs for one in self.settings)
        equal, pairs = (sum(getattr(one, name) for one in self.settings) for name in ("equal", "pairs"))
        return f"{lead} in {equal} of {pairs} pairs, and in all pairs of {whole} of {len(self.settings)} settings"

    def effect(self) -> str:
        """Return what a pair that differs does."""
        return "" if self._all else "There a seed does not repeat a result: a difference in accuracy may be chance."

    def advice(self) -> str:
        """Return what repeats results, where that is not in force."""
        differs = any(one.equal < one.pairs and not one.deterministic for one in self.settings)
        return "`training.deterministic: true` allows only algorithms that do." if differs else ""

    @property
    def _all(self) -> bool:
        return all(one.equal == one.pairs for one in self.settings)
