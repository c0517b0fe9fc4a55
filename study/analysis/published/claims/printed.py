"""A printed figure, an examined claim, and what both kinds of claim need."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import pandas as pd

from study.analysis.stats.log_model import Interval, fit_log_model
from study.analysis.words import device_words, listed

SPEEDUP, SHARE, TIME = "speedup", "relative_performance", "fit_time"
NO_NOISE = "One run a setting carries no noise"


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
        """Hardware, batch size and strategy, as far as they are printed."""
        strategy = "" if self.strategy in (None, "single") else str(self.strategy)
        parts = [
            self.hardware or device_words(self.device or ""),
            f"batch size {self.batch_size:g}" if self.batch_size else "",
            strategy.replace("_", " ").replace("+", ", "),
        ]
        return ", ".join(part for part in parts if part)

    @property
    def half(self) -> float:
        """Half a unit of the last printed digit: what rounding may have taken or added.

        The file's numbers do not keep a last digit that is a zero: there it is more, and agreement the easier.
        """
        return 0.5 * 10.0 ** int(Decimal(plain(self.value)).as_tuple().exponent)


@dataclass(frozen=True)
class Used:
    """A printed figure that an examination used, and what follows from it."""

    line: int
    words: str
    value: str
    gives: str


@dataclass(frozen=True)
class Claim:
    """A published claim, examined."""

    study: str
    source: str
    published: str
    """What is claimed."""
    given: tuple[str, ...]
    """What the figures give, a sentence each."""
    verdict: str
    gives: str
    """Heading of what follows from each figure used."""
    used: tuple[Used, ...]
    lines: tuple[int, ...]
    """Of the claim itself."""

    @property
    def where(self) -> str:
        """The claim's own lines in words."""
        return f"line{'s' * (len(self.lines) > 1)} {listed([str(line) for line in self.lines])} of published.csv"


def printed(frame: pd.DataFrame) -> list[Printed]:
    """The rows of ``published.csv`` that hold a value; the file's first line is its header."""
    names = list(Printed.__dataclass_fields__)[1:]
    table = frame[names].astype(object)
    rows = table.where(table.notna(), None).to_dict(orient="records")
    return [
        Printed(line=line, **{str(key): value for key, value in row.items()})
        for line, row in enumerate(rows, start=2)
        if row["value"] is not None
    ]


def ratio(over: Sequence[float], under: Sequence[float]) -> Interval:
    """Geometric mean over geometric mean; no interval where each is a single time."""
    levels = ["over"] * len(over) + ["under"] * len(under)
    return fit_log_model([*over, *under], levels, [""] * len(levels)).ratio("over", "under")


def agrees(claim: Printed, over: Printed, under: Printed, unit: float = 1.0) -> bool:
    """Whether times that round to the printed ones can give a ratio (in ``unit``) that rounds to the claimed one."""
    least = ratio([over.value - over.half], [under.value + under.half]).value / unit
    most = ratio([over.value + over.half], [under.value - under.half]).value / unit
    return least <= claim.value + claim.half and most >= claim.value - claim.half


def used(row: Printed, gives: str) -> Used:
    """A time that an examination used."""
    return Used(row.line, f"{row.table}: {row.on}", f"{plain(row.value)} s", gives)


def notes(rows: Sequence[Printed]) -> list[str]:
    """What ``published.csv`` notes beside the times, once."""
    distinct = list(dict.fromkeys(row.note for row in rows if row.note))
    return [f"Noted beside the times: {'; '.join(distinct)}."] if distinct else []


def plain(value: float) -> str:
    """A figure as it was printed, without what floating point adds."""
    return f"{value:.10g}"


def four(value: float) -> str:
    """A ratio with one digit more than documents claim."""
    return f"{value:.4g}"
