"""A user's own photographs: one subfolder per class, every file verified by a full decode."""

from functools import partial
from pathlib import Path

from study.artifacts.prepared import LeftOut, Manifest
from study.base.errors import StudyError
from study.config.sections import Dataset
from study.data.listing import Listing, check_both_parts, listing
from study.data.looks import Look, in_both, look
from study.data.preflight import check_classes, given_folder, stat_files, train_images
from study.data.sources import DatasetInfo, Source
from study.data.splits import assign_splits, item_of


class Folder(Source):
    """The folder ``dataset.path``. It is read where it lies, and never written."""

    in_the_image = True
    code = ("data/folder.py", "data/listing.py", "data/looks.py", "data/splits.py", "data/decode.py")

    def keys(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the keys of the split. The files themselves are those of :meth:`inspect`."""
        return ("valid_fraction", "seed")

    def inspect(self, dataset: Dataset) -> DatasetInfo:
        """Return the number of classes and images, and the name, size and time of every image file."""
        folder, found = given_folder(str(dataset.path)), _listed(dataset)
        check_classes({label: len(names) for label, names in found.classes.items()}, str(dataset.path))
        files = stat_files(folder, [folder / name for names in found.classes.values() for name in names])
        counts = [len(names) for names in found.classes.values()]
        trained = list(found.splits.values()).count("train") or train_images(counts, dataset.valid_fraction)
        return DatasetInfo(len(counts), trained, sum(counts) - trained, files)

    def make(self, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        """Return the manifest of the files. One that cannot be decoded is left out, with the reason."""
        given, found = self.base(dataset, folder, results), _listed(dataset)
        looks: dict[str, Look] = {}
        unreadable = []
        for name in (name for names in found.classes.values() for name in names):
            try:
                looks[name] = look(given / name)
            except StudyError as error:
                reason = str(error).removeprefix(f"{Path(name).name}: cannot be decoded: ")
                unreadable.append(LeftOut(name=name, reason=reason))
        sound = {label: [name for name in names if name in looks] for label, names in found.classes.items()}
        splits = {name: found.splits[name] for name in looks if found.splits}
        try:
            check_classes({label: len(names) for label, names in sound.items()}, str(dataset.path))
            check_both_parts(sound, splits, str(dataset.path))
        except StudyError as error:
            more = f"; {len(unreadable)} file(s) cannot be decoded, first {unreadable[0].name!r}" if unreadable else ""
            raise StudyError(f"{error}{more}") from None
        splits = splits or assign_splits(sound, dataset.valid_fraction, dataset.seed)
        items = [item_of(given, name, label, splits[name]) for label, names in sound.items() for name in names]
        return Manifest(
            source=dataset.source,
            generated=False,
            seed=dataset.seed,
            valid_fraction=dataset.valid_fraction,
            classes=sorted(sound),
            train_images=sum(split == "train" for split in splits.values()),
            valid_images=sum(split == "valid" for split in splits.values()),
            items=items,
            left_out=[*found.left_out, *unreadable],
            in_both=in_both(items, [looks[item.name].thumbnail for item in items]),
            otherwise=[LeftOut(name=name, reason=one.otherwise) for name, one in looks.items() if one.otherwise],
        )

    def base(self, dataset: Dataset, folder: Path, results: Path) -> Path:
        """Return the user's folder."""
        return Path(str(dataset.path)).expanduser()


def _listed(dataset: Dataset) -> Listing:
    """Return what lies in the user's folder. Raise :class:`StudyError` if it is no dataset as the study asks for it."""
    given = str(dataset.path)
    refused = partial(StudyError, key="dataset.path", value=given)
    try:
        found = listing(given_folder(given), given)
    except OSError as error:
        where = f"{Path(error.filename).name}: " if error.filename else ""
        raise refused(why=f"cannot be read: {where}{error.strerror}") from None
    for key in ("valid_fraction", "seed") if found.splits else ():
        if (value := getattr(dataset, key)) != (default := Dataset.model_fields[key].default):
            why = "folders above the classes say which pictures are held out"
            raise StudyError(
                key=f"dataset.{key}", value=value, context=f"with {given!r}", why=why, allowed=str(default)
            )
    return found
