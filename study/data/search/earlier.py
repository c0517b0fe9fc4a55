"""The manifest of an earlier search, which the user names: read, and checked against the other keys."""

from pathlib import Path

from study.artifacts.prepared import Item, Manifest, Origin
from study.base.errors import StudyError
from study.config.sections import Dataset, is_folder_name
from study.data.preflight import check_classes


def pictures_of(manifest: Manifest) -> list[tuple[Item, Origin]]:
    """Return the items that have an origin, with it: every item of a search."""
    return [(item, item.origin) for item in manifest.items if item.origin]


def given_manifest(dataset: Dataset) -> Manifest:
    """Return the manifest of an earlier search that ``dataset.manifest`` names, or raise one clear error."""
    path = Path(str(dataset.manifest))
    name = path.name or str(dataset.manifest)
    refused = f"dataset.manifest: {name!r} is not allowed: "
    try:
        manifest = Manifest.of_file(path.expanduser())
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StudyError(f"{refused}it cannot be read ({reason}); name a search's manifest.json") from None
    except StudyError:
        raise StudyError(f"{refused}it is not a manifest of this pipeline; name a search's manifest.json") from None
    if manifest.source != "search" or len(pictures_of(manifest)) < len(manifest.items):
        raise StudyError(f"{refused}its source is {manifest.source!r}, but only a search's manifest lists downloads")
    _check_search(manifest, dataset, name)
    return manifest


def _check_search(manifest: Manifest, dataset: Dataset, name: str) -> None:
    """Raise :class:`StudyError` unless the manifest of a search is sound, and fits the other keys."""
    refused = f"dataset.manifest: {name!r} is not allowed: "
    terms: dict[str, str] = {}
    counts: dict[str, int] = {}
    for item, origin in pictures_of(manifest):
        label = str(item.label)
        if not is_folder_name(label) or not item.name.startswith(f"{label}/"):
            raise StudyError(f"{refused}its class {label!r} cannot be a folder's name")
        terms[label] = origin.term
        counts[label] = counts.get(label, 0) + 1
    check_classes(counts, name, "dataset.manifest")
    if dataset.terms is not None and dataset.terms != terms:
        raise StudyError(f"{refused}it lists a search for {terms}, but dataset.terms says {dataset.terms}")
    if manifest.max_size != dataset.max_size:
        raise StudyError(
            f"dataset.max_size: {dataset.max_size} is not allowed: the pictures of dataset.manifest {name!r} were "
            f"stored with at most {manifest.max_size} pixels; allowed: {manifest.max_size}"
        )
