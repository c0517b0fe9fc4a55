"""A user's own photographs: one subfolder per class, every file verified by decoding it whole."""

import warnings
from pathlib import Path

from PIL import Image

from study.config import Dataset
from study.data.manifest import Item, LeftOut, Manifest, assign_splits
from study.data.preflight import check_classes, class_files
from study.errors import StudyError
from study.fingerprint import file_sha256


def verify(dataset: Dataset) -> Manifest:
    """The manifest of the folder; a file that cannot be decoded is left out, with the reason."""
    given = str(dataset.path)
    folder = Path(given).expanduser()
    left_out: list[LeftOut] = []
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
        items=[
            Item(
                name=name,
                bytes=(folder / name).stat().st_size,
                sha256=file_sha256(folder / name),
                label=label,
                split=splits[name],
            )
            for label, files in names.items()
            for name in files
        ],
        left_out=left_out,
    )


def why_unreadable(path: Path) -> str | None:
    """Why the image cannot be decoded; None where it can. Pillow's own limit guards against bombs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                image.load()
    except Exception as error:  # Pillow's decoders raise nearly anything on a broken file
        text = str(error).replace(str(path), path.name) or error.__class__.__name__
        return text.splitlines()[0]
    return None
