"""The claims of a published document: a ratio of two devices' times, or the batch size that it calls the fastest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from study.analysis.wording.sources import place_words
from study.analysis.words import plain
from study.artifacts.published import Figure, Published, Source
from study.artifacts.setting import Levels

SPEEDUP, SHARE, TIME = "speedup", "relative_performance", "fit_time"
DECIDING = ("training.batch_size", "training.strategy", "training.loop")
"""The conditions that a claim is about, beside the device."""


@dataclass(frozen=True)
class Claim:
    """A published claim: a document claims by what it derives from its figures."""

    document: str
    """The replication that has it."""
    source: Source
    published: str
    """The claim, as a sentence."""
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


def claims_in(published: Published) -> list[Claim]:
    """Return every claim among the figures of a replication, in their order."""
    derived = [row for row in published.figures if row.metric in (SPEEDUP, SHARE)]
    claims: list[Claim] = []
    for source, study in dict.fromkeys((row.source, row.study) for row in derived):
        own = [row for row in derived if (row.source, row.study) == (source, study)]
        shares = [row for row in own if row.metric == SHARE and "training.batch_size" in row.at]
        claims += [_optimum(published, shares)] if shares else []
        claims += [_speedup(published, row) for row in own if row.metric == SPEEDUP]
    return claims


def _optimum(published: Published, shares: Sequence[Figure]) -> Claim:
    """Return the claim that one table makes by the percentages of the best speed that it prints."""
    best = max(shares, key=lambda row: row.value)
    rest = [row.value for row in shares if row != best]
    size = float(best.at["training.batch_size"])
    reached = f"; the others reach {plain(min(rest))}% to {plain(max(rest))}% of its speed" if rest else ""
    return Claim(
        document=published.name,
        source=published.sources[best.source],
        published=f"Batch size {size:g} is the optimum{reached}",
        lines=tuple(row.line for row in shares),
        place=place_words([row.table for row in shares], [row.line for row in shares]),
        batch_size=size,
        rest=(min(rest), max(rest)) if rest else None,
        device=str(best.at["device"]) if "device" in best.at else None,
    )


def _speedup(published: Published, claim: Figure) -> Claim:
    """Return the claim of a ratio. It is of the GPU's run whose time gives it, else of the first, else of what it
    prints."""
    times = [row for row in published.figures if (row.metric, row.study) == (TIME, claim.study)]
    own = [row for row in times if row.source == claim.source]
    cpu = next((row for row in own if row.at.get("device") == "cpu"), None)
    gpus = [row for row in own if cpu and row.at.get("device") == "cuda" and row.epochs == cpu.epochs]
    meant = next((gpu for gpu in gpus if cpu and agrees(claim, cpu, gpu)), gpus[0] if gpus else claim)
    return Claim(
        document=published.name,
        source=published.sources[claim.source],
        published=f"The GPU is {plain(claim.value)} times as fast as the CPU",
        lines=(claim.line,),
        place=place_words([claim.table], [claim.line]),
        ratio=claim.value,
        slower=_setting(cpu) if cpu else {},
        faster=_setting(meant),
    )


def agrees(claim: Figure, over: Figure, under: Figure, unit: float = 1.0) -> bool:
    """Return whether times that round to the printed ones can give a ratio (in ``unit``) that rounds to the claim."""
    least = (over.value - _half(over)) / (under.value + _half(under)) / unit
    most = (over.value + _half(over)) / (under.value - _half(under)) / unit
    return least <= claim.value + _half(claim) and most >= claim.value - _half(claim)


def _half(figure: Figure) -> float:
    """Return half a unit of the last printed digit: the largest change by rounding.

    The file's numbers do not keep a last digit of zero; the value is then too large, and agreement too easy.
    """
    return 0.5 * 10.0 ** int(Decimal(plain(figure.value)).as_tuple().exponent)


def _setting(figure: Figure) -> Levels:
    """Return batch size, strategy and loop, as far as they are printed, by dotted key."""
    return {key: figure.at[key] for key in DECIDING if key in figure.at}
