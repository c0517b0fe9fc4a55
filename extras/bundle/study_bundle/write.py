"""Results are packed into one archive, the same into the same bytes. :mod:`study.artifacts.bundle`
reads it."""

import hashlib
import json
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, product
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from study.artifacts.bundle import CHECKSUMS, HELD, is_held
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, selected
from study.artifacts.record import is_readable
from study.base.errors import StudyError
from study.base.files import whole
from study.base.privacy import plain
from study.config.load import read_selection, read_study

FILES = Results(Path())
NAMED = 12
"""Number of names in a line, of which a folder may give thousands."""
Say = Callable[[str], None]
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive: the earliest that a zip can name."""
PACKED = ".parquet"
"""Files that are compressed already."""
Contents = Mapping[str, bytes | Path]
"""The content of each file of a bundle, or the file with it, by the path in the archive."""
DECLARED = ("config/studies", "replications/*/studies")
"""Folders of a checkout that hold the files of studies; a bundle has them in the first."""


def write_bundle(
    studies: Sequence[str], results: Path, checkout: Path, output: Path, say: Say
) -> None:
    """Write the studies of a results folder (by default those selected) into one archive,
    ``output``.

    The studies' files are those of a bundle, or those beside the results, in a folder that uses the
    workflow; else those of ``checkout``. ``say`` gets a line for what is not there.

    Raise :class:`StudyError` if no study has a record.
    """
    plans = _plans(studies, results)
    contents, refused = _contents(plans, results, [results, results.absolute().parent, checkout])
    if not any(name.split("/")[1:2] == ["records"] for name in contents):
        raise StudyError(
            f"{results}: no run is there yet; a bundle holds the records of one or more"
        )
    checksums = []
    with whole(output) as temporary, ZipFile(temporary, "w") as archive:
        for name, content in sorted(contents.items()):
            data = content if isinstance(content, bytes) else content.read_bytes()
            checksums.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
            _add(archive, name, data)
        _add(archive, CHECKSUMS, "".join(checksums).encode())
    _say_names(
        "not in the bundle, because it is not there or is not what was planned",
        _missing(plans, contents),
        say,
    )
    _say_names("left out, because a bundle cannot hold a file of that name or size", refused, say)


def _say_names(what: str, names: Sequence[str], say: Say) -> None:
    """Say ``what`` is true of these files in one line, which names the first of them; say nothing
    of none."""
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        say(f"{what}: {', '.join(names[:NAMED])}{more}")


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
    """Return the content of each file but the checksums, and the paths of those that a bundle
    cannot hold."""
    contents: dict[str, bytes | Path] = {}
    refused = []
    for path, file in _files(plans, results, sources):
        if not (is_held(path) and is_readable(file)):
            refused.append(path)
        elif path.startswith("images/"):
            contents[path] = _json_without_folders(path, file)
        else:
            contents[path] = file
    for plan in plans:
        path = str(FILES.plan(plan.name))
        contents[path] = _json_without_folders(path, results / path)
        _tell_levels_apart(plan)
    contents[str(FILES.selection)] = json.dumps(
        {"studies": [plan.name for plan in plans]}, indent=1
    ).encode()
    return contents, refused


def _files(
    plans: Sequence[Plan], results: Path, sources: Sequence[Path]
) -> Iterator[tuple[str, Path]]:
    """Yield each file that is there and belongs to the studies: its path in a bundle, and its
    own."""
    every = chain.from_iterable(plan.runs for plan in plans)
    manifests = {str(FILES.manifest(run.dataset)) for run in every if run.dataset}
    shared = [
        path for path in HELD if path.startswith(("images/", "environments/", "warm_up_runs/"))
    ]
    own = list[str]()
    for path in HELD:
        if path.startswith("*/"):
            own += [path.replace("*", plan.name, 1) for plan in plans]
    for path in (*manifests, *shared, *own):
        yield from ((file.relative_to(results).as_posix(), file) for file in results.glob(path))
    for plan in plans:
        files = list[Path]()
        for source, folder in product(sources, DECLARED):
            files += sorted(source.glob(f"{folder}/{plan.name}.yaml"))
        if plan.name in plan.start.files:  # from the folder of the start
            files.insert(0, sources[1] / plan.start.files[plan.name])
        for file in files:
            if _declares(file, plan):
                yield _study_file(plan), file
                break


def _study_file(plan: Plan) -> str:
    return f"config/studies/{plan.name}.yaml"


def _declares(file: Path, plan: Plan) -> bool:
    """Return whether a file of the study says what was planned: as it was started, in full or
    reduced."""
    for started in (plan.start.config, {}, {"size": "reduced"}):
        with suppress(StudyError, OSError):
            selection = read_selection({**started, "studies": [plan.name]})
            if read_study(str(file), [], selection, plan.study.rung) == plan.study:
                return True
    return False


def _tell_levels_apart(plan: Plan) -> None:
    for key, levels in plan.study.factors.items():
        if len({plain(level) for level in levels}) < len(set(levels)):
            raise StudyError(
                f"{plan.name}: factors: {key}: two levels have one name without their folders, "
                "which a bundle does not hold: give the folders different names"
            )


def _json_without_folders(name: str, file: Path) -> bytes:
    """Return a JSON file in which absolute paths are cut to their base names: people share
    bundles."""
    content = file.read_bytes()
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        raise StudyError(f"{name}: it is not JSON") from None
    shared = plain(values)
    return content if shared == values else json.dumps(shared, indent=1).encode()


def _missing(plans: Sequence[Plan], contents: Contents) -> list[str]:
    """Return the files and folders that a whole result has and this one lacks."""
    wanted: list[str] = []
    for plan in plans:
        wanted += (str(FILES.image(device)) for device in plan.images)
        for run in plan.runs:
            if not run.settings.command:
                wanted += (
                    str(FILES.manifest(run.dataset)),
                    str(FILES.weights(plan.name, run.weights)),
                )
        wanted += (_study_file(plan), f"{FILES.telemetry_folder(plan.name)}/")
    return [
        one for one in dict.fromkeys(wanted) if not any(name.startswith(one) for name in contents)
    ]


def _add(archive: ZipFile, name: str, data: bytes) -> None:
    """Add a file, with the time and the rights that every file has."""
    entry = ZipInfo(name, EPOCH)
    entry.create_system = 3  # rights are those of Unix, wherever the bundle is made
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    entry.compress_type = ZIP_STORED if name.endswith(PACKED) else ZIP_DEFLATED
    archive.writestr(entry, data)
