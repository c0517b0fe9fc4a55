"""A user's own photographs: one subfolder per class, every file verified by a full decode."""

from functools import partial
from pathlib import Path

from study.artifacts.prepared import LeftOut, Manifest
from study.base.errors import StudyError
from study.config.sections import Dataset
from study.data.decode import decode
from study.data.preflight import as_text, check_classes, given_folder, stat_files, train_images
from study.data.sources import DatasetInfo, Source
from study.data.splits import assign_splits, item_of

SUFFIXES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}


class Folder(Source):
    """The folder ``dataset.path``. It is read where it lies, and never written."""

    in_the_image = True
    code = ("data/folder.py", "data/splits.py", "data/decode.py")

    def keys(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the keys of the split. The files themselves are those of :meth:`inspect`."""
        return ("valid_fraction", "seed")

    def inspect(self, dataset: Dataset) -> DatasetInfo:
        """Return the number of classes and images, and the name, size and time of every image file."""
        given = str(dataset.path)
        folder = given_folder(given)
        try:
            classes = class_files(folder)
        except OSError as error:
            raise StudyError(key="dataset.path", value=given, why=f"cannot be read: {error.strerror}") from None
        counts = {name: len(files) for name, files in classes.items()}
        check_classes(counts, given)
        files = stat_files(folder, [path for paths in classes.values() for path in paths])
        return DatasetInfo(len(classes), train_images(counts.values(), dataset.valid_fraction), files)

    def make(self, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        """Return the manifest of the files. One that cannot be decoded is left out, with the reason."""
        given = self.base(dataset, folder, results)
        names, left_out = _sorted_out(given)
        try:
            check_classes({label: len(files) for label, files in names.items()}, str(dataset.path))
        except StudyError as error:
            unreadable = f"; {len(left_out)} file(s) cannot be decoded, first {left_out[0].name!r}" if left_out else ""
            raise StudyError(f"{error}{unreadable}") from None
        splits = assign_splits(names, dataset.valid_fraction, dataset.seed)
        return Manifest(
            source=dataset.source,
            generated=False,
            seed=dataset.seed,
            valid_fraction=dataset.valid_fraction,
            classes=sorted(names),
            train_images=sum(split == "train" for split in splits.values()),
            valid_images=sum(split == "valid" for split in splits.values()),
            items=[item_of(given, name, label, splits[name]) for label, files in names.items() for name in files],
            left_out=left_out,
        )

    def base(self, dataset: Dataset, folder: Path, results: Path) -> Path:
        """Return the user's folder."""
        return Path(str(dataset.path)).expanduser()


def class_files(folder: Path) -> dict[str, list[Path]]:
    """Return the image files of each class: the subfolders of ``folder`` by name, their files by relative name.

    Hidden files and folders are ignored. A subfolder without an image is a class without images.
    """
    return {
        subfolder.name: [path for path in _visible(subfolder) if _why_no_image(folder, path) is None]
        for subfolder in _subfolders(folder)
    }


def _why_no_image(folder: Path, path: Path) -> str | None:
    """Return why a path cannot be that of an image, or None if it can."""
    name = str(path.relative_to(folder))
    if name != as_text(name):
        return "its name is no UTF-8"
    if not path.is_file():
        return "it is not a file"
    return None if path.suffix.lower() in SUFFIXES else f"its suffix {path.suffix!r} is not that of an image"


def _sorted_out(folder: Path) -> tuple[dict[str, list[str]], list[LeftOut]]:
    """Return the relative names of the sound images of each class, and the other files with their reasons."""
    left_out = [
        LeftOut(name=as_text(path.relative_to(folder).as_posix()), reason=reason)
        for subfolder in _subfolders(folder)
        for path in _visible(subfolder)
        if (reason := _why_no_image(folder, path))
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
    return names, left_out


def why_unreadable(path: Path) -> str | None:
    """Return why a run could not decode the image, or None if it can."""
    try:
        decode(path, 3, 8)
    except StudyError as error:
        return str(error).removeprefix(f"{path.name}: cannot be decoded: ")
    return None


def _subfolders(folder: Path) -> list[Path]:
    """Return the folders of the classes. Raise :class:`StudyError` if one has no proper name, or holds the others."""
    subfolders = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    for path in subfolders:
        refused = partial(StudyError, key="dataset.path", value=as_text(path.name), context="as a class")
        if path.name != as_text(path.name):
            raise refused(why="its name is no UTF-8; give the folder another name")
        if folder.resolve().is_relative_to(path.resolve()):
            raise refused(why="it is a link to a folder that holds all classes; remove the link")
    return sorted(subfolders, key=lambda path: path.name)


def _visible(folder: Path) -> list[Path]:
    """Return what a folder holds that is no folder: links that lead nowhere, pipes and devices, too."""
    return sorted(path for path in folder.rglob("*") if not path.name.startswith(".") and not path.is_dir())
