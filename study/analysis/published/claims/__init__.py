"""The published claims, each with what the figures beside it support. The wording of a claim is its substance."""

from collections.abc import Sequence

from study.analysis.published.claims.batch_size import examine_optimum
from study.analysis.published.claims.devices import examine_speedup
from study.analysis.published.claims.printed import SHARE, SPEEDUP, TIME, Claim, printed
from study.analysis.wording.sources import citation
from study.artifacts.published import Published


def examine(published: Published) -> list[Claim]:
    """Return every claim among the figures of a replication, in their order."""
    rows = printed(published)
    claims: list[Claim] = []
    # A document claims by what it derives from its figures: ratios of devices, and shares of the best batch size.
    for key in dict.fromkeys((row.source, row.study) for row in rows if row.metric in (SPEEDUP, SHARE)):
        own = [row for row in rows if (row.source, row.study) == key]
        times = [row for row in rows if row.study == key[1] and row.metric == TIME]
        shares = [row for row in own if row.metric == SHARE]
        claims += [examine_optimum(published.name, shares, times)] if shares else []
        epochs = [row for row in own if row.metric.startswith("epoch_")]
        claims += [examine_speedup(published.name, row, times, epochs) for row in own if row.metric == SPEEDUP]
    return claims


def as_text(claims: Sequence[Claim]) -> str:
    """Return the report's section of claims as text for a terminal."""
    blocks = []
    for claim in claims:
        lines = [f"{claim.document}: {claim.published}", f"  {claim.verdict}"]
        lines.append(f"  Claim of {citation(claim.source, claim.place)}")
        lines += [f"  - {sentence}" for sentence in claim.given]
        lines += [
            f"    line {used.line}: {used.words}: {used.value}" + f"; {claim.gives}: {used.gives}" * bool(used.gives)
            for used in claim.used
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
