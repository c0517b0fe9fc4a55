"""Results are packed into one archive, the same into the same bytes. :mod:`study.artifacts.bundle` reads it."""

import hashlib
import json
import math
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from study import __version__
from study.artifacts.bundle import FILES, KINDS, METADATA, RULES, WORKFLOW, Say, kind_of, say_names
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, selected
from study.artifacts.record import Record, is_readable
from study.base.errors import StudyError
from study.base.files import whole
from study.base.privacy import without_folders
from study.config.load import read_selection, read_study
from study_bundle.crate import Action, Part, metadata

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive: the earliest that a zip can name."""
PACKED = (".parquet", ".png")
"""Files that are compressed already."""
Contents = Mapping[str, bytes | Path]
"""The content of each file of a bundle, or the file with it, by the path in the archive."""
DECLARED = ("config/studies", "replications/*/studies")
"""Folders of a checkout that hold the files of studies; a bundle has them in the first."""


def write_bundle(studies: Sequence[str], results: Path, checkout: Path, output: Path, say: Say) -> None:
    """Write the studies of a results folder (by default those selected) into one archive, ``output``.

    The workflow and the studies' files are those of the results, if these were unpacked from a bundle, else those of
    ``checkout``; a file of a study beside the results, in a folder that uses the workflow, comes before. ``say`` gets a
    line for what is not there. Raise :class:`StudyError` if no study has a record.
    """
    plans = _plans(studies, results)
    unpacked = (results / WORKFLOW).is_file()
    sources = [results] if unpacked else [results.absolute().parent, checkout]
    contents, refused = _contents(plans, results, sources)
    times = {name: one for name, file in contents.items() if _is_record(name) and (one := _took(Path(str(file))))}
    if not times:
        raise StudyError(f"{results}: no run is there yet; a bundle holds the records of one or more")
    with whole(output) as temporary, ZipFile(temporary, "w") as archive:
        parts = [_add(archive, name, contents[name]) for name in sorted(contents)]
        actions = [action for plan in plans for action in _actions(plan, contents, times)]
        titles = {plan.name: without_folders(plan.study.title) for plan in plans}
        _add(archive, METADATA, metadata(titles, parts, actions, __version__).encode())
    missing = _missing(plans, contents)
    say_names("not in the bundle, because it is not there or is not what was planned", missing, say)
    say_names("left out, because a bundle cannot hold a file of that name or size", refused, say)


def _plans(studies: Sequence[str], results: Path) -> list[Plan]:
    held = sorted(path.parent.name for path in results.glob("*/plan.json"))
    plans = []
    for name in dict.fromkeys(studies or selected(results)):
        if name not in held:
            raise StudyError(f"{results}: no study {name!r}; allowed: {', '.join(held) or 'none'}")
        plan = Plan.read(Results(results).plan(name))
        if plan.name != name:
            raise StudyError(f"{Results(results).plan(name)}: it is the plan of {plan.name!r}")
        plans.append(plan)
    return plans


def _contents(
    plans: Sequence[Plan], results: Path, sources: Sequence[Path]
) -> tuple[dict[str, bytes | Path], list[str]]:
    """Return the content of each file but the metadata, and the paths of those that a bundle cannot hold."""
    contents: dict[str, bytes | Path] = {}
    refused = []
    for path, file in _files(plans, results, sources):
        if not (kind_of(path) and is_readable(file)):
            refused.append(path)
        elif path.startswith("images/"):
            contents[path] = _json_without_folders(path, file)
        else:
            contents[path] = file
    for plan in plans:
        path = str(FILES.plan(plan.name))
        contents[path] = _json_without_folders(path, results / path)
        _tell_levels_apart(plan)
    contents[str(FILES.selection)] = json.dumps({"studies": [plan.name for plan in plans]}, indent=1).encode()
    return contents, refused


def _files(plans: Sequence[Plan], results: Path, sources: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield each file that is there and belongs to the studies: its path in a bundle, and its own."""
    manifests = {FILES.manifest(run.dataset) for plan in plans for run in plan.runs}
    shared = [
        FILES.image("*"),
        FILES.environment("*"),
        FILES.warm_up_runs / "*.json",
        FILES.warm_up_runs / "*.parquet",
        *manifests,
    ]
    with suppress(StudyError):
        if set(selected(results)) == {plan.name for plan in plans}:  # else the page is about other studies, too
            shared.append(FILES.report)
    own = [kind.path.replace("*", plan.name, 1) for kind in KINDS if kind.path[0] == "*" for plan in plans]
    for folder, paths in ((results, [*map(str, shared), *own]), (sources[-1], [WORKFLOW, RULES])):
        for path in paths:
            yield from ((file.relative_to(folder).as_posix(), file) for file in folder.glob(path))
    for plan in plans:
        places = [f"{folder}/{plan.name}.yaml" for folder in DECLARED]
        files = [file for source in sources for place in places for file in sorted(source.glob(place))]
        if plan.name in plan.start.files:  # from the folder of the start
            files.insert(0, sources[0] / plan.start.files[plan.name])
        yield from ((_study_file(plan), file) for file in [one for one in files if _declares(one, plan)][:1])


def _study_file(plan: Plan) -> str:
    return f"config/studies/{plan.name}.yaml"


def _declares(file: Path, plan: Plan) -> bool:
    """Return whether a file of the study says what was planned: as it was started, in full or reduced."""
    for started in (plan.start.config, {}, {"size": "reduced"}):
        with suppress(StudyError, OSError):
            selection = read_selection({**started, "studies": [plan.name]})
            if read_study(str(file), [], selection) == plan.study:
                return True
    return False


def _tell_levels_apart(plan: Plan) -> None:
    for key, levels in plan.study.factors.items():
        if len({_plain(level) for level in levels}) < len(set(levels)):
            raise StudyError(
                f"{plan.name}: factors: {key}: two levels have one name without their folders, which a bundle does not "
                "hold: give the folders different names"
            )


def _json_without_folders(name: str, file: Path) -> bytes:
    """Return a JSON file in which absolute paths are cut to their base names: people share bundles."""
    content = file.read_bytes()
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        raise StudyError(f"{name}: it is not JSON") from None
    plain = _plain(values)
    return content if plain == values else json.dumps(plain, indent=1).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        return Path(value).name if value.startswith(("/", "~")) else without_folders(value)
    return value


def _missing(plans: Sequence[Plan], contents: Contents) -> list[str]:
    """Return the files and folders that a whole result has and this one lacks."""
    wanted = {str(FILES.report): None}
    for plan in plans:
        name = plan.name
        wanted |= dict.fromkeys(str(FILES.image(device)) for device in plan.images)
        for run in plan.runs:
            wanted |= dict.fromkeys(map(str, (FILES.manifest(run.dataset), FILES.weights(name, run.weights))))
        wanted |= dict.fromkeys(map(str, (FILES.timings(name), FILES.fit(name), _study_file(plan))))
        wanted |= dict.fromkeys(f"{folder}/" for folder in (FILES.telemetry_folder(name), FILES.figures(name)))
    return [one for one in wanted if one not in contents and not any(name.startswith(one) for name in contents)]


def _is_record(name: str) -> bool:
    return name.split("/")[1:2] == ["records"]


class Took(NamedTuple):
    """One run in time: its session, its start in epoch seconds, and the seconds that its process took."""

    session: int
    started: float
    seconds: float


def _took(record: Path) -> Took | None:
    """Return when the run of a record took how long, without checking the record; None if it does not say."""
    if not is_readable(record):
        return None
    try:
        told = json.loads(record.read_bytes())
        started = datetime.fromisoformat(told["started"]).timestamp()
        took = Took(int(told["session"]), started, float(told["process_seconds"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return took if math.isfinite(took.seconds) else None


def _actions(plan: Plan, contents: Contents, times: Mapping[str, Took]) -> list[Action]:
    """Return the starts of a study in their order. What follows from all records is a result of the last one."""
    sessions: dict[int, list[str]] = {}
    for name in sorted(times):
        if name.startswith(f"{plan.name}/"):
            sessions.setdefault(times[name].session, []).append(name)
    given = {_study_file(plan), str(FILES.plan(plan.name)), *(str(FILES.manifest(run.dataset)) for run in plan.runs)}
    last = {str(path) for path in (FILES.report, FILES.timings(plan.name), FILES.fit(plan.name))}
    last |= {name for name in contents if name.startswith(f"{FILES.figures(plan.name)}/")}
    return [
        Action(
            study=plan.name,
            session=session,
            began=min(times[name].started for name in names),
            ended=max(times[name].started + times[name].seconds for name in names),
            made_by=_made_by(contents[names[0]]),
            runs=len(names),
            objects=sorted(given & contents.keys()),
            results=sorted(
                {*names, *map(_telemetry, names), *(last if session == max(sessions) else ())} & contents.keys()
            ),
        )
        for session, names in sorted(sessions.items())
    ]


def _telemetry(record: str) -> str:
    return record.replace("/records/", "/telemetry/", 1).removesuffix(".json") + ".parquet"


def _made_by(record: bytes | Path) -> str:
    """Return the version and the commit of the code that a record names; nothing for a damaged one."""
    with suppress(StudyError, OSError):
        software = Record.of_file(Path(str(record))).software
        return f"version {software.study_version}, commit {software.git_commit or 'unknown'}"
    return ""


def _add(archive: ZipFile, name: str, content: bytes | Path) -> Part:
    """Add a file, with the time and the rights that every file has, and return its entry for the metadata."""
    data = content if isinstance(content, bytes) else content.read_bytes()
    entry = ZipInfo(name, EPOCH)
    entry.create_system = 3  # rights are those of Unix, wherever the bundle is made
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    entry.compress_type = ZIP_STORED if name.endswith(PACKED) else ZIP_DEFLATED
    archive.writestr(entry, data)
    kind = kind_of(name)
    return Part(name, kind.description if kind else "", len(data), hashlib.sha256(data).hexdigest())
