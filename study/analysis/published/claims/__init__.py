"""The published claims, each with what the figures beside it support. The wording of a claim is its substance."""

import functools
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from study.analysis.published import table
from study.analysis.published.claims.batch_size import examine_optimum
from study.analysis.published.claims.devices import examine_speedup
from study.analysis.published.claims.printed import SHARE, SPEEDUP, TIME, Claim, printed
from study.analysis.wording.sources import citation
from study.base.errors import StudyError


def published_claims() -> tuple[Claim, ...]:
    """Return every published claim, examined; their fits are made once a process."""
    return _claims_in(table.FILE)


@functools.cache
def _claims_in(file: Path) -> tuple[Claim, ...]:
    return tuple(examine(pd.read_csv(file)))


def examine(frame: pd.DataFrame) -> list[Claim]:
    """Return every claim among the published figures, in their order; ``frame`` is ``published.csv`` as it is read."""
    rows = printed(frame)
    claims: list[Claim] = []
    # A document claims by what it derives from its figures: ratios of devices, and shares of the best batch size.
    for source, study in dict.fromkeys((row.source, row.study) for row in rows if row.metric in (SPEEDUP, SHARE)):
        own = [row for row in rows if (row.source, row.study) == (source, study)]
        times = [row for row in rows if row.study == study and row.metric == TIME]
        shares = [row for row in own if row.metric == SHARE]
        claims += [examine_optimum(shares, times)] if shares else []
        epochs = [row for row in own if row.metric.startswith("epoch_")]
        claims += [examine_speedup(row, times, epochs) for row in own if row.metric == SPEEDUP]
    return claims


def chosen(claims: Sequence[Claim], study: str | None) -> list[Claim]:
    """Return the claims of one study, or all."""
    known = list(dict.fromkeys(claim.study for claim in claims))
    if study is not None and study not in known:
        raise StudyError(f"--study: no claim of a study {study!r}; allowed: {', '.join(known)}")
    return [claim for claim in claims if study in (None, claim.study)]


def as_text(claims: Sequence[Claim]) -> str:
    """Return the report's section of claims as text for a terminal."""
    blocks = []
    for claim in claims:
        lines = [f"{claim.study}: {claim.published}", f"  {claim.verdict}"]
        lines.append(f"  Claim of {citation(claim.source, claim.place)}")
        lines += [f"  - {sentence}" for sentence in claim.given]
        lines += [
            f"    line {used.line}: {used.words}: {used.value}" + f"; {claim.gives}: {used.gives}" * bool(used.gives)
            for used in claim.used
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
