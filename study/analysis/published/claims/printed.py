"""A printed figure, an examined claim, and what the examination of each kind of claim needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from study.analysis.stats.log_model import Interval, fit_log_model
from study.analysis.words import device_words, plain
from study.artifacts.published import Figure, Published, Source
from study.artifacts.setting import Levels

SPEEDUP, SHARE, TIME = "speedup", "relative_performance", "fit_time"
DECIDING = ("training.batch_size", "training.strategy", "training.loop")
"""The conditions that a claim is about, beside the device."""
NO_NOISE = "With one run per setting there is no estimate of the noise"


@dataclass(frozen=True)
class Printed:
    """A printed figure, as an examination reads it; ``line`` is its place in ``published.csv``."""

    line: int
    source: Source
    study: str | None
    table: str
    hardware: str | None
    epochs: str | None
    metric: str
    value: float
    note: str | None
    at: Levels
    """Levels by dotted key, as far as they are printed."""
    told: tuple[str, ...]
    """The strategy and the loop, where the figures of the study differ in them."""

    @property
    def device(self) -> str | None:
        """The device, if it is printed."""
        return str(self.at["device"]) if "device" in self.at else None

    @property
    def batch_size(self) -> float | None:
        """The number of images of a step, if it is printed."""
        size = self.at.get("training.batch_size")
        return None if size is None else float(size)

    @property
    def on(self) -> str:
        """Hardware, batch size and what else tells the setting from others, in words."""
        parts = [
            self.hardware or device_words(self.device or ""),
            f"batch size {self.batch_size:g}" if self.batch_size else "",
            *self.told,
        ]
        return ", ".join(part for part in parts if part)

    @property
    def setting(self) -> Levels:
        """Batch size, strategy and loop, as far as they are printed, by dotted key."""
        return {key: self.at[key] for key in DECIDING if key in self.at}

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

    document: str
    """The replication that has it."""
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
    slower: Levels = field(default_factory=dict)
    """Settings of the CPU's run in a claimed ratio, by dotted key."""
    faster: Levels = field(default_factory=dict)
    """Those of the GPU's run."""
    batch_size: float | None = None
    """The batch size that is claimed to be the fastest."""
    rest: tuple[float, float] | None = None
    """The smallest and the largest percentage of its speed that the other sizes are claimed to reach."""
    device: str | None = None
    """The device on which it is."""


def printed(published: Published) -> list[Printed]:
    """Return the figures of a replication."""
    shared = {"line", "study", "table", "hardware", "epochs", "metric", "value", "note", "at"}
    return [
        Printed(
            source=published.sources[one.source],
            told=_told(one, published),
            **{key: getattr(one, key) for key in shared},
        )
        for one in published.figures
    ]


def _told(figure: Figure, published: Published) -> tuple[str, ...]:
    """Return the levels of a figure in which the figures of its study differ."""
    own = [one for one in published.figures if one.study == figure.study]
    varied = [key for key in DECIDING[1:] if len({one.at[key] for one in own if key in one.at}) > 1]
    return tuple(str(figure.at[key]).replace("_", " ") for key in varied if figure.at.get(key, "single") != "single")


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
    """Return the remarks of the replication on the times, each once."""
    distinct = list(dict.fromkeys(row.note for row in rows if row.note))
    return [f"Noted beside the times: {'; '.join(distinct)}."] if distinct else []


def four(value: float) -> str:
    """Return a ratio with one digit more than documents claim."""
    return f"{value:.4g}"
