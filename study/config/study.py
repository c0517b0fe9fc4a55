"""A file of `config/studies`: keys, factors, and what is fitted against what."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from study.base.errors import ValueRefused, check_known
from study.base.strict import Declared
from study.config import names
from study.config.claims import CLOCKS, Claim, Source
from study.config.names import switch_words
from study.config.sections import short_name
from study.config.settings import Keys, get, setting_keys
from study.config.times import TIMES, TimeName

RungKey = Literal["training.epochs", "training.freeze_epochs", "replicates"]
MOST_REPLICATES = 1000
MOST_COMBINATIONS = 10**6
"""Combinations of levels that a plan goes through, in a minute or two."""
MARGIN = 0.05
"""Within which two times are equivalent, where a study says nothing else."""


class Curve(Declared):
    """The time that is fitted, and the factor that it depends on."""

    x: str = "training.batch_size"
    """The factor on the horizontal axis."""
    y: TimeName = "fit_seconds"
    """The time that is fitted, in seconds. `target_seconds` needs a `training.target_accuracy`."""


class Evidence(Declared):
    """The limits of what others may do on the machine while a run is measured. None of them looks
    at the run's times. A run that crosses one is marked as disturbed, kept, and measured once more
    (as long as at most a quarter of the start goes on waiting and measuring anew);
    the second record counts. A key without a value sets no limit. Changing a limit measures no run
    again.
    """

    others_cpu_percent: float | None = Field(10, ge=0)
    """CPU time of processes that are not the run's, in percent of the CPUs that the run may use."""
    steal_percent: float | None = Field(2, ge=0)
    """Time in which a virtual machine's host ran others on the run's CPUs, in percent of them."""
    memory_pressure_percent: float | None = Field(5, ge=0)
    """Share of the time in which all processes with work waited for memory, such as for pages that
    were swapped out (PSI, `full`)."""
    throttled_percent: float | None = Field(5, ge=0)
    """Share of the samples in which heat, the power supply or the hardware slowed the GPU down. Its
    usual power cap does not count."""
    device_processes: int | None = Field(0, ge=0)
    """Number of other processes on the GPU when the run began, or after it ended."""
    device_percent: float | None = Field(10, ge=0)
    """Utilisation of the GPU by others when the run began, in percent."""


class Ladder(Declared):
    """Shorter forms of a study, for machines on which it would take long. A first start times a few
    steps of each setting, and takes the first form that fits, or else the last; every later start
    in the same results takes the same. No setting is left out."""

    minutes: float = Field(gt=0)
    """Minutes that the runs of a study may take."""
    rungs: list[dict[RungKey, Annotated[int, Field(ge=0)]]] = Field(min_length=1)
    """Each has some of `training.epochs`, `training.freeze_epochs` and `replicates` with values,
    from the longest to the shortest. The study as its file has it is the longest of all. A value
    that a start sets stays."""


class StudyFile(Keys):
    """What a file of `config/studies` may hold."""

    title: str = Field(min_length=1)
    """Name of the study in headings."""
    question: str = Field(min_length=1)
    """The question that the study answers, as one sentence."""
    factors: dict[str, list[Any]] = Field(default_factory=dict)
    """Dotted keys with their levels. The runs are all combinations of the levels, times
    `replicates`."""
    only: list[dict[str, Any]] = Field(default_factory=list)
    """Settings to run in place of all combinations, such as `{training.loop: torch,
    training.batch_size: 64}`. Each stands for every combination with these levels of these factors,
    and may have `replicates` of its own. none: all combinations."""
    names: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Names that people give to settings, each with the levels of factors that it stands for, such
    as `stock fastai: {training.loop: fastai}`. The page and the terminal say a name in place of its
    levels, and of those that all settings of `only` with these levels share. Of two names that fit,
    that of more levels is said. A name measures nothing again."""
    null_control: bool = False
    """True to run every configuration twice in each block, as the two levels of the factor
    `control`. The difference between the two is the machine's noise."""
    replicates: int = Field(3, ge=1, le=MOST_REPLICATES)
    """Number of runs of each configuration, one in each randomised block."""
    equivalence_margin: float = Field(MARGIN, gt=0, le=1)
    """Two times are equivalent if their ratio is shown to lie within 1 + this and its
    reciprocal."""
    curve: Curve | None = None
    """The time and the factor of the fit; none for no fit."""
    time: TimeName | None = None
    """The time that is compared in a study without a `curve`. none: `fit_seconds`; of a command
    `printed_seconds` where `output.seconds` is given, else `marked_seconds` where `output.starts`
    is, else `command_seconds`."""
    learning_margin: float = Field(0.02, ge=0, lt=1)
    """Accuracy, 0 to 1, by which a setting may fall short of the best one and still counts as
    trained. One that falls short by more, beyond the noise between runs, has not learned and is not
    recommended, and neither is one whose accuracy is not above chance."""
    effects: bool = False
    """True to compare the levels of every factor but the device with the first one of each,
    everything else equal: averaged over the settings of the other factors that there are. With
    `only` one change at a time is enough. It goes with neither a curve nor a contrast."""
    contrast: str | None = None
    """The factor whose levels are compared as a ratio of times."""
    reduced: dict[str, Any] = Field(default_factory=dict)
    """Dotted keys (or `replicates`) with their values for `size: reduced`, which fits a machine
    with two CPU cores."""
    ladder: Ladder | None = None
    """Shorter forms for slower machines; none for one length everywhere."""
    evidence: Evidence = Field(default_factory=Evidence)
    claims: list[Claim] = Field(default_factory=list)
    """What somebody claims, to be compared with what is measured here."""
    source: Source | None = None
    """Where the claims stand that name no source of their own."""
    claim_margin: float = Field(0.1, gt=0, lt=1)
    """How far a claimed number may lie from what is measured here, as a share, and still be the
    same."""

    @property
    def compared(self) -> list[str]:
        """Every factor except ``control``, whose two levels are replicates of each other."""
        return [key for key in self.factors if key != "control"]

    @property
    def curve_key(self) -> str | None:
        """The factor of ``curve``; None without one."""
        return self.curve.x if self.curve else None

    @property
    def total(self) -> TimeName:
        """The time that is analysed: that of ``curve``, else ``time``, else the default."""
        if self.curve:
            return self.curve.y
        if self.command and not self.time:
            told: TimeName = "marked_seconds" if self.output.starts else "command_seconds"
            return "printed_seconds" if self.output.seconds else told
        return self.time or "fit_seconds"

    @property
    def factor_keys(self) -> list[str]:
        """Every dotted key that may be a factor."""
        return setting_keys(self.command)

    def levels_of(self, key: str) -> list[Any]:
        """Return the levels of a dotted key: those of a factor, else its value."""
        return self.factors.get(key, [get(self, key)])

    @property
    def runs_a_setting(self) -> str:
        """The number of runs of each setting, in words: settings of ``only`` may have their own."""
        counts = sorted({entry.get("replicates", self.replicates) for entry in self.only}) or [
            self.replicates
        ]
        return f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])

    def runs_of(self, levels: Mapping[str, Any]) -> int:
        """Return the number of runs of the combination with these levels of the factors; 0 if
        ``only`` has it not."""
        if not self.only:
            return self.replicates
        entries = [
            entry
            for entry in self.only
            if all(levels[key] == entry[key] for key in entry if key in levels)
        ]
        return max((entry.get("replicates", self.replicates) for entry in entries), default=0)

    @model_validator(mode="before")
    @classmethod
    def _a_null_control_is_a_factor(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("null_control") is True:
            factors = values.get("factors") or {}
            if isinstance(factors, dict):
                return values | {"factors": factors | {"control": ["first", "second"]} | factors}
        return values

    @model_validator(mode="before")
    @classmethod
    def _claims_inherit_their_source(cls, values: Any) -> Any:
        claims = values.get("claims") if isinstance(values, dict) else None
        if isinstance(claims, list) and values.get("source"):
            own = {"source": values["source"]}
            claims = [own | one if isinstance(one, dict) else one for one in claims]
            return values | {"claims": claims}
        return values

    @model_validator(mode="after")
    def _keys_and_levels_are_those_of_runs(self) -> Self:
        for key in self.reduced:
            check_known("reduced", key, [*self.factor_keys, "replicates"], "no such key")
        allowed = [*self.factor_keys, *(["control"] if self.null_control else [])]
        for key, levels in self.factors.items():
            check_known("factors", key, allowed, "no such key")
            if not levels:
                raise ValueRefused(key=f"factors.{key}", value=[], allowed="at least one level")
            if any(isinstance(level, (dict, list)) for level in levels):
                why = "a level is one value, not a list or mapping"
                raise ValueRefused(key=f"factors.{key}", value=levels, why=why)
            if len({repr(level) for level in levels}) < len(levels):
                raise ValueRefused(key=f"factors.{key}", value=levels, why="give each level once")
        if (combinations := math.prod(map(len, self.factors.values()))) > MOST_COMBINATIONS:
            why = f"{combinations} combinations of levels: at most {MOST_COMBINATIONS} are planned"
            raise ValueRefused(key="factors", why=why)
        if self.curve:
            if self.time:
                why = "it has its own: curve.y"
                raise ValueRefused(key="time", value=self.time, context="with a curve", why=why)
            check_known("curve.x", self.curve.x, self.factors, "no such factor")
        self._check_time("curve.y" if self.curve else "time")
        self._check_only()
        if self.effects and (self.curve or self.contrast):
            why = "it compares every factor"
            raise ValueRefused(
                key="effects", value=True, context="with a curve or a contrast", why=why
            )
        if self.contrast:
            check_known("contrast", self.contrast, self.factors, "no such factor")
        names.check(self.names, self.factors, self.only)
        return self

    def _check_time(self, key: str) -> None:
        """Raise ValueError if the runs do not have the time that is compared; ``key`` gives it."""
        of_commands = [name for name, time in TIMES.items() if time.spans == "command"]
        own = [y for y in TIMES if (y in of_commands) == bool(self.command)]
        if self.total not in own:
            job = "a command" if self.command else "a training"
            raise ValueRefused(key=key, value=self.total, context=f"with {job}", allowed=own)
        needed = TIMES[self.total].needs
        if needed and get(self, needed) is None and needed not in self.factors:
            raise ValueRefused(
                key=key, value=self.total, context=f"without {needed}", why=f"give {needed}"
            )
        for place, claim in enumerate(self.claims):
            if claim.clock and CLOCKS[claim.clock] not in own:
                why = "a command has its own clock, output"
                raise ValueRefused(key=f"claims.{place}.clock", value=claim.clock, why=why)

    def _check_only(self) -> None:
        """Raise ValueError if an entry of ``only`` names no factor, no level of it, or no number of
        runs."""
        for entry in self.only:
            for key, level in entry.items():
                if key == "replicates":
                    if type(level) is not int or not 1 <= level <= MOST_REPLICATES:
                        raise ValueRefused(
                            key="only.replicates", value=level, allowed=f"1 to {MOST_REPLICATES}"
                        )
                else:
                    check_known("only", key, [*self.factors, "replicates"], "no such factor")
                    check_known(f"only.{key}", level, self.factors[key], "no level of this factor")


class Study(StudyFile):
    """A study as it is planned: what its file holds, with the values that the selection changed."""

    full: dict[str, Any] = {}
    """The values that the `reduced` keys replaced, with `size: reduced`."""
    rung: dict[str, int] = {}
    """The values of the ladder's rung that the study takes here; empty at its full length."""


def display_level(study: Study, key: str, level: Any) -> Any:
    """Return ``level`` as tables show it.

    A switch becomes its name or `no` and its name. A path becomes its base name, and a user's own
    model the name of its factory, if no other level of ``key`` has the same.
    """
    if isinstance(level, bool):
        return switch_words(key, level)
    if not isinstance(level, (int, float)):
        short = _short(key, level)
        return (
            short
            if [_short(key, other) for other in study.factors.get(key, [])].count(short) < 2
            else str(level)
        )
    return level


def _short(key: str, level: Any) -> str:
    return short_name(str(level)) if key == "model.name" else Path(str(level)).name
