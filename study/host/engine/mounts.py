"""What a container may see: the mounts of a run, and the settings as they read inside."""

from collections.abc import Sequence
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.base.files import ROOT
from study.config import own_model
from study.config.settings import Settings
from study.data.sources import source_of
from study.host.engine import container
from study.host.engine.container import Mount


def settings_inside(settings: Settings) -> tuple[Settings, list[Mount]]:
    """Return the settings with every path as the container sees it, and the mounts that make those paths visible."""
    values, mounts = settings.model_dump(), []
    places = (("dataset", "path", "/data"), ("model", "weights", "/weights"))
    for section, key, folder in places:
        given = values[section][key]
        if not given or (section == "model" and given in ("imagenet", "none")):
            continue
        source = Path(given).expanduser().resolve()
        values[section][key] = f"{folder}/{source.name}"
        mounts.append(Mount(source, values[section][key]))
    return Settings.model_validate(values), mounts


def code_mount() -> Mount:
    """Return the mount of the package, which is not part of the image, so that an edit does not rebuild the image."""
    return Mount(ROOT / "study", f"{container.WORK}/study")


def own_mounts(settings: Settings) -> list[Mount]:
    """Return the mounts of the user's own model and of its local imports; none if the settings name no own model."""
    here, name = Path.cwd(), settings.model.name
    at = own_model.home(name, here)
    own = own_model.sources(name, here)
    return [Mount(path.resolve(), f"{container.WORK}/{path.relative_to(at).as_posix()}") for path in own]


def run_mounts(run: Run, study: str, results: Path) -> list[Mount]:
    """Return the mounts of all that a run reads: the package, its data, the decision about its weights, the weights."""
    files = Results(results)
    dataset, data = run.settings.dataset, files.data(run.dataset)
    base = source_of(dataset).base(dataset, data, results)
    wanted = dict.fromkeys([data, base, files.decisions(study), files.hub])
    inside = Path(container.WORK, "results")
    seen = [
        Mount(path.resolve(), str(inside / path.relative_to(results)))
        for path in wanted
        if path.is_relative_to(results) and path.exists()  # a user's own folder comes with the settings
    ]
    return [code_mount(), *own_mounts(run.settings), *seen]


def check_readable(mounts: Sequence[Mount], user: tuple[int, int]) -> None:
    """Raise :class:`StudyError` if the user inside the container may not read a mount.

    ``user`` is that user's (uid, gid). It differs from the caller only if the caller is root.
    """
    if user[0] != container.UNPRIVILEGED:
        return
    for mount in mounts:
        needed = 0o005 if mount.source.is_dir() else 0o004
        if mount.source.stat().st_mode & needed != needed:
            raise StudyError(
                f"{mount.source.name}: root's containers run as user {container.UNPRIVILEGED}, which may not read it; "
                f"allow it with: chmod -R o+rX, or run as a user other than root"
            )


def check_visible(folder: Path, names: Sequence[str], root: bool) -> None:
    """Raise :class:`StudyError` if a container with ``folder`` mounted could not read one of the files ``names`` in it.

    ``root``: True if the caller is root, so that the container runs as another user.
    """
    base = folder.resolve()
    for name in names:
        path = (base / name).resolve()
        if not path.is_relative_to(base):
            raise StudyError(
                f"dataset.path: {name!r} is a link to outside the folder, which a container does not see; copy the "
                "file, or run on the host: --config container=none"
            )
        if root and not path.stat().st_mode & 0o004:
            raise StudyError(
                f"dataset.path: {name!r} is readable only by root, and containers run as user "
                f"{container.UNPRIVILEGED}; allow it with: chmod -R o+rX"
            )
