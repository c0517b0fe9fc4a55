"""The metadata of a bundle: a Workflow Run RO-Crate 0.5, written as JSON-LD with one entity for each file.

It is flat, and grows with the number of files alone. https://w3id.org/ro/wfrun/workflow/0.5 is the profile.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from study.artifacts.bundle import METADATA, WORKFLOW

LICENSE = "MIT"
CRATE = "https://w3id.org/ro/crate/1.1"
WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    WORKFLOW_CRATE: "Workflow RO-Crate",
}
SNAKEMAKE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".yaml": "application/yaml",
}
"""The media type of a file by its suffix; any other is plain text."""
LAST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The last day that can be written: a record may say that its run took longer."""

Entity = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One file of a bundle."""

    name: str
    """Path in the archive, with forward slashes."""
    description: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Action:
    """One start of the workflow in one study; its times are in epoch seconds."""

    study: str
    session: int
    began: float
    ended: float
    made_by: str
    """Version and commit of the code; empty if unknown."""
    runs: int
    objects: Sequence[str]
    """Names of the files that the start was given."""
    results: Sequence[str]
    """Names of the files that it made."""


def metadata(titles: dict[str, str], parts: Sequence[Part], actions: Sequence[Action], version: str) -> str:
    """Return the metadata of a bundle as JSON. ``titles`` are those of the studies, by their names.

    The bundle is dated by the end of its last start, and by no clock: the same files give the same text.
    """
    return json.dumps(
        {
            # The checksum is a term of the profile's own context, which is not asked for: one term needs no network.
            "@context": [f"{CRATE}/context", {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}],
            "@graph": [
                _descriptor(),
                _root(titles, parts, actions),
                *(_work(profile, name=name, version=profile.rsplit("/", 1)[1]) for profile, name in PROFILES.items()),
                _work(f"https://spdx.org/licenses/{LICENSE}", name=f"{LICENSE} licence", identifier=LICENSE),
                _entity(SNAKEMAKE, "ComputerLanguage", name="Snakemake", url={"@id": "https://snakemake.github.io"}),
                *map(_action, actions),
                *(_workflow(part, version) if part.name == WORKFLOW else _file(part) for part in parts),
            ],
        },
        indent=1,
    )


def _entity(identity: str, kind: str | list[str], **values: Any) -> Entity:
    return {"@id": identity, "@type": kind, **values}


def _work(identity: str, **values: Any) -> Entity:
    return _entity(identity, "CreativeWork", **values)


def _ids(names: Iterable[str]) -> Entity | list[Entity]:
    """Return references; one stands alone, as a compacted document has it."""
    references: list[Entity] = [{"@id": name} for name in names]
    return references[0] if len(references) == 1 else references


def _descriptor() -> Entity:
    return _work(METADATA, about={"@id": "./"}, conformsTo=_ids([CRATE, WORKFLOW_CRATE]))


def _root(titles: dict[str, str], parts: Sequence[Part], actions: Sequence[Action]) -> Entity:
    runs = sum(action.runs for action in actions)
    return _entity(
        "./",
        "Dataset",
        name=f"Results of {', '.join(titles)}",
        description=f"Plans, records and telemetry of {runs} run(s), and what follows from them: "
        + "; ".join(titles.values()),
        license={"@id": f"https://spdx.org/licenses/{LICENSE}"},
        datePublished=_time(max(action.ended for action in actions)),
        conformsTo=_ids(PROFILES),
        mainEntity={"@id": WORKFLOW},
        mentions=_ids(map(_identity, actions)),
        hasPart=_ids(part.name for part in parts),
    )


def _identity(action: Action) -> str:
    return f"#{action.study}-start-{action.session}"


def _action(action: Action) -> Entity:
    return _entity(
        _identity(action),
        "CreateAction",
        name=f"{action.study}, start {action.session}",
        description=f"{action.runs} run(s) of the study {action.study}{action.made_by and f': {action.made_by}'}",
        startTime=_time(action.began),
        endTime=_time(action.ended),
        instrument={"@id": WORKFLOW},
        object=_ids(action.objects),
        result=_ids(action.results),
    )


def _file(part: Part) -> Entity:
    return _entity(
        part.name,
        "File",
        name=PurePosixPath(part.name).name,
        description=part.description,
        encodingFormat=FORMATS.get(PurePosixPath(part.name).suffix, "text/plain"),
        contentSize=str(part.bytes),
        sha256=part.sha256,
    )


def _workflow(part: Part, version: str) -> Entity:
    return _file(part) | {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "Reproducible training studies",
        "programmingLanguage": {"@id": SNAKEMAKE},
        "version": version,
        "license": {"@id": f"https://spdx.org/licenses/{LICENSE}"},
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(min(seconds, LAST), UTC).isoformat(timespec="seconds")
