"""Notes on what the runs used: images that are no photographs, weights that are not pretrained, files left out."""

import re
from collections.abc import Sequence

from study.artifacts.checked import Records
from study.artifacts.prepared import fell_back
from study.artifacts.record import Record
from study.base.durations import quantity
from study.config.sections import is_own


def origins_of(records: Sequence[Record]) -> list[str]:
    """Return notes on images that are no photographs, and on weights that are not pretrained."""
    notes = []
    if any(record.data and record.data.generated for record in records):
        notes.append(
            "The images are generated, not photographs: the times are valid, the accuracies hold for drawn images only."
        )
    # Networks that have no pretrained weights need no note on random ones.
    weighted = [record for record in records if record.weights and not is_own(record.settings.model.name)]
    random = [record for record in weighted if record.weights and record.weights.kind == "random"]
    again = (
        f" To look for ImageNet weights again: python -m study retry {records[0].study} --weights" if records else ""
    )
    for reason in sorted({record.weights.reason for record in random if record.weights}):
        who = "Every run starts" if len(random) == len(weighted) else f"{len(random)} of {len(weighted)} runs start"
        sought = any(record.weights and fell_back(record.weights) for record in random)
        notes.append(
            f"{who} from random weights ({_said(reason)}): the times are valid, the accuracies are not those of "
            "transfer learning." + (again if sought else "")
        )
    return notes


def _said(reason: str) -> str:
    """Return a reason without the number of an error, and a name that was not found in plain words."""
    told = re.sub(r"\[Errno -?\d+\] ", "", reason)
    unknown = "Name or service not known|Temporary failure in name resolution|nodename nor servname provided.*"
    return re.sub(unknown, "the server's name was not found, as without a network", told)


def oddities_of(found: Records) -> list[str]:
    """Return notes on files that were left out, and on records that do not fit or carry no checksum."""
    records = found.included.values()
    left = {record.data.left_out for record in records if record.data and record.data.left_out}
    bare = sum(record.record_sha256 is None for record in records)
    return [
        *([f"The data leave out {quantity(max(left), 'file')}: the manifest names each reason."] if left else []),
        *(f"{name}, excluded before, does not fit: {why}." for name, why in found.refused_aside.items()),
        *([f"Without a checksum of their own: {quantity(bare, 'record')}. An edit would not show."] if bare else []),
    ]
