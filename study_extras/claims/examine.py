"""The published claims, each with what the figures beside it support. The wording of a claim is its substance."""

from collections.abc import Sequence

from study.analysis.published.claims import SHARE, TIME, claims_in
from study.analysis.wording.sources import citation
from study.artifacts.published import Published
from study_extras.claims.batch_size import examine_optimum
from study_extras.claims.devices import examine_speedup
from study_extras.claims.printed import Examined, printed


def examine(published: Published) -> list[Examined]:
    """Return every claim among the figures of a replication, in their order."""
    rows = printed(published)
    found = []
    for claim in claims_in(published):
        said = [row for row in rows if row.line in claim.lines]
        times = [row for row in rows if row.study == said[0].study and row.metric == TIME]
        if said[0].metric == SHARE:
            found.append(examine_optimum(claim, said, times))
        else:
            own = [row for row in rows if (row.source, row.study) == (said[0].source, said[0].study)]
            epochs = [row for row in own if row.metric.startswith("epoch_")]
            found.append(examine_speedup(claim, said[0], times, epochs))
    return found


def as_text(examined: Sequence[Examined]) -> str:
    """Return examined claims as text for a terminal."""
    blocks = []
    for one in examined:
        lines = [f"{one.claim.document}: {one.claim.published}", f"  {one.verdict}"]
        lines.append(f"  Claim of {citation(one.claim.source, one.claim.place)}")
        lines += [f"  - {sentence}" for sentence in one.given]
        lines += [
            f"    line {used.line}: {used.words}: {used.value}" + f"; {one.gives}: {used.gives}" * bool(used.gives)
            for used in one.used
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
