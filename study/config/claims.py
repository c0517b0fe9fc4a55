"""The claims that a study examines, as its file has them: what is claimed of which settings, and
who says so."""

from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import ConfigDict, Field, PositiveFloat, field_validator, model_validator

from study.base.errors import ValueRefused
from study.base.strict import Declared
from study.config.times import TimeName

Kind = Literal["ratio", "best", "rank", "shares", "seconds", "accuracy", "images_per_second"]
KINDS: tuple[Kind, ...] = get_args(Kind)
NEEDS: dict[str, tuple[str, ...]] = {"ratio": ("slower", "faster"), "shares": ("of",)}
"""The settings that a claim of a kind is about, beside `at`."""
MOST_WORDS, MOST_SOURCE_WORDS = 12, 27
"""What one row of the report, and the line below it, can hold."""

Chosen = dict[str, bool | int | float | str]
"""Levels by the dotted keys of the settings that they are of."""
Clock = Literal["steady", "training", "whole"]
CLOCKS: dict[Clock, TimeName] = {
    "steady": "steady_seconds",
    "training": "train_seconds",
    "whole": "fit_seconds",
}
"""The time of each clock."""


class Source(Declared):
    """Where a claim stands, and on what it was measured there."""

    title: str = Field(min_length=1)
    """Title of the document."""
    kind: str | None = None
    """What it is, such as `blog post`."""
    date: str | None = None
    """Its day, month or year: `2025-04-16`, `2025-04` or `2025`."""
    place: str | None = None
    """The part of the document, such as `table 2`."""
    hardware: str | None = None
    """What it was measured on, such as `an RTX 3060 Ti`."""
    software: str | None = None
    """The versions there, such as `torch 1.12`."""
    runs: str | None = None
    """How often it was measured, such as `one run each`."""
    same_machine: bool = False
    """Whether it was measured on the machine that measures it here. Only then can a claim be
    `contradicted`."""
    runs_a_side: int = Field(1, ge=1)
    """Runs of each setting there: so far off it may be by chance."""
    noise_percent: float | None = Field(None, gt=0)
    """Noise of one run there, in percent. none: the noise here."""
    address: str | None = Field(None, pattern=r"^https?://\S+$")
    """Its web address."""

    @model_validator(mode="before")
    @classmethod
    def _differences_are_of_the_claim(cls, values: Any) -> Any:
        if isinstance(values, dict) and "differs" in values:
            why = "it stands beside `source` now, as a list of a few words each"
            raise ValueRefused(key="differs", value=values["differs"], why=why)
        return values

    @field_validator("date", mode="before")
    @classmethod
    def _is_a_date(cls, value: Any) -> Any:
        if value is None:
            return None
        text = str(value)
        parts = text.split("-")
        try:
            date(*map(int, parts), *[1] * (3 - len(parts)))
        except (TypeError, ValueError):
            raise ValueRefused(
                value=value, allowed="a day, month or year: 2025-04-16, 2025-04, 2025"
            ) from None
        return text

    @model_validator(mode="after")
    def _fits_one_line(self) -> Self:
        parts = self.model_dump(exclude={"address"}).values()
        words = sum(len(part.split()) for part in parts if isinstance(part, str))
        if words > MOST_SOURCE_WORDS:
            raise ValueRefused(
                why=f"{words} words: a line holds {MOST_SOURCE_WORDS} words without the address"
            )
        return self


class ClaimedShare(Declared):
    """The speed that a setting is claimed to reach, as a share of the best one's."""

    setting: Chosen = Field(default_factory=dict)
    """Levels of the setting. none: every other one."""
    percent: float = Field(gt=0)
    """Percent of the speed of `of`; with `to` the least."""
    to: float | None = Field(None, gt=0)
    """The most, where a range is claimed."""


class Claim(Declared):
    """A claim that somebody makes, to be compared with what is measured. It has one of the kinds:
    `ratio` (with `slower` and `faster`), `best`, `rank`, `shares` (with `of`), `seconds`,
    `accuracy` or `images_per_second`.
    """

    # what a study's `source` gives need not stand here
    model_config = ConfigDict(json_schema_extra=lambda schema: schema["required"].remove("source"))

    claim: str = Field(min_length=1)
    """The claim in words, 12 at most."""
    ratio: float | None = Field(None, gt=0)
    """How many times as fast as `slower` it is with `faster`. 1: there is no gain."""
    to: float | None = Field(None, gt=0)
    """The most, where `ratio` is the least of a range."""
    sense: Literal["about", "at least", "up to"] = "about"
    """How `ratio` is meant. `up to`: the best of all settings that `at` leaves reaches it."""
    slower: Chosen = Field(default_factory=dict)
    """Levels of the slower side: `{device: cpu}`."""
    faster: Chosen = Field(default_factory=dict)
    """Levels of the faster side, of the same keys."""
    best: Chosen = Field(default_factory=dict)
    """Levels that are claimed to be the fastest."""
    rank: list[Chosen] = Field(default_factory=list)
    """Settings from the fastest to the slowest."""
    shares: list[ClaimedShare] = Field(default_factory=list)
    """What other settings reach of the speed of `of`."""
    of: Chosen = Field(default_factory=dict)
    """The setting whose speed is 100%."""
    seconds: float | None = Field(None, gt=0)
    """The time that the study compares, of the setting `at`."""
    accuracy: float | None = Field(None, ge=0, le=1)
    """Accuracy of the setting `at`, 0 to 1."""
    images_per_second: float | None = Field(None, gt=0)
    """Throughput of the setting `at`."""
    printed: dict[int | float | str, PositiveFloat] = Field(default_factory=dict)
    """Seconds that the source prints, by the level of the only key of `best` or `of`: they are
    drawn beside what is measured."""
    at: Chosen = Field(default_factory=dict)
    """Levels at which all of the claim holds. The report has a row for each setting that this
    leaves."""
    clock: Clock | None = None
    """The time that is meant: `steady` is a training without its warm-up (images a second, seconds
    of many steps), `training` is one without validation, `whole` one with it. none: the time that
    the study compares."""
    within: float | None = Field(None, gt=0, lt=1)
    """How far off it may be and still be the same, as a share; of an accuracy as a difference.
    none: the study's `claim_margin`; of no gain and of the fastest its `equivalence_margin`, of an
    accuracy its `learning_margin`."""
    differs: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    """What was done otherwise there and can change the number, each as a few words; hardware and
    versions apart. With one difference the job is like that of the source, with several it is
    another job, of which no word is said."""
    source: Source
    """Where it stands. none: the study's `source`."""

    @property
    def kind(self) -> Kind:
        """What is claimed."""
        return self._kinds[0]

    @property
    def grade(self) -> str:
        """How like the job here is to that of the source: `A` the same, `B` with one difference,
        `C` another."""
        return "A" if not self.differs else "B" if len(self.differs) == 1 else "C"

    @property
    def _kinds(self) -> list[Kind]:
        return [kind for kind in KINDS if getattr(self, kind) not in (None, {}, [])]

    @model_validator(mode="after")
    def _is_one_whole_claim(self) -> Self:
        if (words := len(self.claim.split())) > MOST_WORDS:
            raise ValueRefused(
                key="claim", value=self.claim, why=f"{words} words", allowed=f"at most {MOST_WORDS}"
            )
        if not self._kinds:
            raise ValueRefused(why="it claims nothing", allowed=KINDS)
        first, *others = self._kinds
        if others:
            value = getattr(self, others[0])
            why = "a claim is of one kind: make it two claims"
            raise ValueRefused(key=others[0], value=value, context=f"with {first}", why=why)
        for kind, sides in NEEDS.items():
            for side in sides:
                given = getattr(self, side)
                if kind == first and not given:
                    raise ValueRefused(key=side, why=f"missing; {kind} needs it")
                if kind != first and given:
                    raise ValueRefused(
                        key=side, value=given, context=f"with {first}", why=f"it belongs to {kind}"
                    )
        for key, plain in (("to", None), ("sense", "about")):
            if first != "ratio" and getattr(self, key) != plain:
                raise ValueRefused(
                    key=key, value=getattr(self, key), context=f"with {first}", why="it is of ratio"
                )
        if self.to and (self.to <= (self.ratio or 0) or self.sense != "about"):
            raise ValueRefused(key="to", value=self.to, allowed="more than `ratio`, about")
        if self.within and self.rank:
            raise ValueRefused(key="within", value=self.within, why="an order has no margin")
        if len(self.rank) == 1:
            raise ValueRefused(key="rank", value=self.rank, allowed="two settings and more")
        if self.printed and len(self.best or self.of) != 1:
            raise ValueRefused(key="printed", why="it belongs to a `best` or `of` with one key")
        if self.slower.keys() != self.faster.keys() or (self.slower and self.slower == self.faster):
            raise ValueRefused(
                key="faster", value=self.faster, allowed=f"other levels of {', '.join(self.slower)}"
            )
        return self

    def levels(self) -> Iterator[tuple[str, str, Any]]:
        """Yield each level that the claim names: where, its key, and the level."""
        shares = {
            f"shares.{place}.setting": share.setting for place, share in enumerate(self.shares)
        } | {f"rank.{place}": chosen for place, chosen in enumerate(self.rank)}
        sides = {side: getattr(self, side) for side in ("slower", "faster", "best", "of", "at")}
        for where, chosen in (sides | shares).items():
            for key, level in chosen.items():
                yield where, key, level
