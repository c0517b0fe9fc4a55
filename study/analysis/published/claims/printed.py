"""A printed figure, an examined claim, and what the examination of each kind of claim needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pandas as pd

from study.analysis.published.beside import strategy_of
from study.analysis.published.sources import Source
from study.analysis.stats.findings import Setting
from study.analysis.stats.log_model import Interval, fit_log_model
from study.analysis.words import device_words, plain

SPEEDUP, SHARE, TIME = "speedup", "relative_performance", "fit_time"
NO_NOISE = "With one run per setting there is no estimate of the noise"


@dataclass(frozen=True)
class Printed:
    """A row of ``published.csv``; ``line`` is its place in the file."""

    line: int
    source: str
    study: str
    table: str
    device: str | None
    hardware: str | None
    batch_size: float | None
    strategy: str | None
    epochs: str | None
    metric: str
    value: float
    note: str | None

    @property
    def on(self) -> str:
        """Hardware, batch size and strategy, as far as they are printed, in words."""
        strategy = "" if self.strategy in (None, "single") else str(self.strategy)
        parts = [
            self.hardware or device_words(self.device or ""),
            f"batch size {self.batch_size:g}" if self.batch_size else "",
            strategy.replace("_", " ").replace("+", ", "),
        ]
        return ", ".join(part for part in parts if part)

    @property
    def setting(self) -> Setting:
        """Batch size and strategy, as far as they are printed, by dotted key."""
        size: Setting = {"training.batch_size": self.batch_size} if self.batch_size else {}
        return size | strategy_of(self.strategy or "")

    @property
    def half(self) -> float:
        """Half a unit of the last printed digit: the largest change by rounding.

        The file's numbers do not keep a last digit of zero; the value is then too large, and agreement too easy.
        """
        return 0.5 * 10.0 ** int(Decimal(plain(self.value)).as_tuple().exponent)


@dataclass(frozen=True)
class Used:
    """A printed figure that an examination used, and the value that follows from it."""

    line: int
    words: str
    value: str
    gives: str


@dataclass(frozen=True)
class Claim:
    """A published claim, examined."""

    study: str
    source: Source
    published: str
    """The claim, as a sentence."""
    given: tuple[str, ...]
    """Sentences on what the figures give."""
    verdict: str
    gives: str
    """Heading of the values that follow from the figures used."""
    used: tuple[Used, ...]
    lines: tuple[int, ...]
    """Lines of the claim itself in the file."""
    place: str
    """Parts of the document that print the claim, and its lines in the file, in words."""
    ratio: float | None = None
    """The claimed ratio of two devices' times."""
    slower: Setting = field(default_factory=dict)
    """Settings of the CPU's run in a claimed ratio, by dotted key."""
    faster: Setting = field(default_factory=dict)
    """Those of the GPU's run."""
    batch_size: float | None = None
    """The batch size that is claimed to be the fastest."""
    rest: tuple[float, float] | None = None
    """The smallest and the largest percentage of its speed that the other sizes are claimed to reach."""
    device: str | None = None
    """The device on which it is."""


def printed(frame: pd.DataFrame) -> list[Printed]:
    """Return the rows of ``published.csv`` that hold a value; the file's first line is its header."""
    names = list(Printed.__dataclass_fields__)[1:]
    table = frame[names].astype(object)
    rows = table.where(table.notna(), None).to_dict(orient="records")
    return [
        Printed(line=line, **{str(key): value for key, value in row.items()})
        for line, row in enumerate(rows, start=2)
        if row["value"] is not None
    ]


def ratio(over: Sequence[float], under: Sequence[float]) -> Interval:
    """Return geometric mean over geometric mean; it has no interval where each is a single time."""
    levels = ["over"] * len(over) + ["under"] * len(under)
    return fit_log_model([*over, *under], levels, [""] * len(levels)).ratio("over", "under")


def agrees(claim: Printed, over: Printed, under: Printed, unit: float = 1.0) -> bool:
    """Return whether times that round to the printed ones can give a ratio (in ``unit``) that rounds to the claim."""
    least = ratio([over.value - over.half], [under.value + under.half]).value / unit
    most = ratio([over.value + over.half], [under.value - under.half]).value / unit
    return least <= claim.value + claim.half and most >= claim.value - claim.half


def used(row: Printed, gives: str) -> Used:
    """Return a time that an examination used."""
    return Used(row.line, f"{row.table}: {row.on}", f"{plain(row.value)} s", gives)


def notes(rows: Sequence[Printed]) -> list[str]:
    """Return the remarks of ``published.csv`` on the times, each once."""
    distinct = list(dict.fromkeys(row.note for row in rows if row.note))
    return [f"Noted beside the times: {'; '.join(distinct)}."] if distinct else []


def four(value: float) -> str:
    """Return a ratio with one digit more than documents claim."""
    return f"{value:.4g}"
