"""A printed figure, an examined claim, and what the examination of each kind of claim needs."""

from collections.abc import Sequence
from dataclasses import dataclass

from study.analysis.published.claims import DECIDING, Claim
from study.analysis.stats.log_model import Interval, fit_log_model
from study.analysis.words import device_words, plain
from study.artifacts.published import Figure, Published
from study.artifacts.setting import Levels

NO_NOISE = "With one run per setting there is no estimate of the noise"


class Printed(Figure):
    """A printed figure, as an examination reads it."""

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


@dataclass(frozen=True)
class Used:
    """A printed figure that an examination used, and the value that follows from it."""

    line: int
    words: str
    value: str
    gives: str


@dataclass(frozen=True)
class Examined:
    """A published claim, examined."""

    claim: Claim
    given: tuple[str, ...]
    """Sentences on what the figures give."""
    verdict: str
    gives: str
    """Heading of the values that follow from the figures used."""
    used: tuple[Used, ...]


def printed(published: Published) -> list[Printed]:
    """Return the figures of a replication."""
    return [Printed(**one.model_dump(), told=_told(one, published)) for one in published.figures]


def _told(figure: Figure, published: Published) -> tuple[str, ...]:
    """Return the levels of a figure in which the figures of its study differ."""
    own = [one for one in published.figures if one.study == figure.study]
    varied = [key for key in DECIDING[1:] if len({one.at[key] for one in own if key in one.at}) > 1]
    return tuple(str(figure.at[key]).replace("_", " ") for key in varied if figure.at.get(key, "single") != "single")


def ratio(over: Sequence[float], under: Sequence[float]) -> Interval:
    """Return geometric mean over geometric mean; it has no interval where each is a single time."""
    levels = ["over"] * len(over) + ["under"] * len(under)
    return fit_log_model([*over, *under], levels, [""] * len(levels)).ratio("over", "under")


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
