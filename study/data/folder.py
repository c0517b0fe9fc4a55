"""A user's own photographs: one subfolder per class, every file verified by a full decode."""

from pathlib import Path

from study.artifacts.manifest import LeftOut, Manifest
from study.base.errors import StudyError
from study.config.sections import Dataset
from study.data.decode import decode
from study.data.preflight import check_classes, class_files, other_files
from study.data.splits import assign_splits, item_of


def verify(dataset: Dataset) -> Manifest:
    """Return the manifest of the folder. A file that cannot be decoded is left out, with the reason."""
    given = str(dataset.path)
    folder = Path(given).expanduser()
    left_out = [
        LeftOut(name=path.relative_to(folder).as_posix(), reason=f"its suffix {path.suffix!r} is not that of an image")
        for path in other_files(folder)
    ]
    names: dict[str, list[str]] = {}
    for label, files in class_files(folder).items():
        names[label] = []
        for path in files:
            name = path.relative_to(folder).as_posix()
            reason = why_unreadable(path)
            if reason:
                left_out.append(LeftOut(name=name, reason=reason))
            else:
                names[label].append(name)
    try:
        check_classes({label: len(files) for label, files in names.items()}, given)
    except StudyError as error:
        unreadable = f"; {len(left_out)} file(s) cannot be decoded, first {left_out[0].name!r}" if left_out else ""
        raise StudyError(f"{error}{unreadable}") from None
    splits = assign_splits(names, dataset.valid_fraction, dataset.seed)
    return Manifest(
        source="folder",
        generated=False,
        seed=dataset.seed,
        valid_fraction=dataset.valid_fraction,
        classes=sorted(names),
        train_images=sum(split == "train" for split in splits.values()),
        valid_images=sum(split == "valid" for split in splits.values()),
        items=[item_of(folder, name, label, splits[name]) for label, files in names.items() for name in files],
        left_out=left_out,
    )


def why_unreadable(path: Path) -> str | None:
    """Return why a run could not decode the image, or None if it can. Pillow's own limit guards against bombs."""
    try:
        decode(path, 3, 8)
    except StudyError as error:
        return str(error).removeprefix(f"{path.name}: cannot be decoded: ")
    return None
