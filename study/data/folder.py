"""A user's own photographs: what lies in the folder, by names alone, and which of it a run can use.

Each file of a class is decoded once. The folder has a subfolder for each class, or parts of a split
above these.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.prepared import InBoth, Item, LeftOut, Manifest, Split
from study.base.errors import StudyError
from study.config.sections import Dataset
from study.data.decode import opened, to_channels, undecodable, upright
from study.data.sources import DatasetInfo, Source, as_text, contents, given_folder, refused
from study.data.splits import assign_splits, manifest_of, train_images

SUFFIXES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
OF_SYSTEMS = {
    "__macosx",
    "__pycache__",
    "@eadir",
    "#recycle",
    "@recycle",
    "#snapshot",
    "$recycle.bin",
    "lost+found",
    "system volume information",
}
"""Folders that systems and programs leave in any folder, in small letters."""
PARTS = {"train": "train", "val": "valid", "valid": "valid", "validation": "valid", "test": "test"}
"""Names, in small letters, of the folders of a split, which lie above the classes; and the part
that each is."""
PURPOSES: dict[Split, str] = {"train": "train on", "valid": "validate on"}
"""What the pictures of each part are for."""
ORIENTATION = 0x0112
"""EXIF's tag of how a picture is turned; 1 is upright."""
OURS = "it is a folder of results of studies"
BESIDE = "it lies beside the folders of the classes"
TESTED = "it is in the part for tests, and a run trains on one part and validates on the other"


@dataclass(frozen=True)
class Listing:
    """The files below a folder of pictures, each in one place. Names are relative to the folder."""

    classes: dict[str, list[str]]
    """The files of each class that may be images; a folder without any is a class, too."""
    splits: dict[str, Split]
    """The part of each of these, if folders above the classes say it; empty otherwise."""
    left_out: list[LeftOut]
    """All other files that are not hidden, with the reason."""

    def check(self, path: str) -> None:
        """Raise one clear error that names ``path``, and the endings that were left out, unless
        there are at least two classes, each with images to train and to validate on."""
        beside = endings(self.left_out)
        for label, names in self.classes.items() if self.splits else ():
            for split, purpose in PURPOSES.items():
                if split not in {self.splits[name] for name in names}:
                    raise refused(
                        path,
                        f"the class {label!r} has no picture to {purpose}{beside}",
                        "the same classes in both parts",
                    )
        if not self.classes:
            raise refused(
                path, "it holds no image in a subfolder; give a folder with one subfolder per class"
            )
        if not any(self.classes.values()):
            raise refused(
                path,
                f"none of its folders holds an image{beside}",
                f"files that end in {', '.join(sorted(SUFFIXES))}",
            )
        if len(self.classes) < 2:
            one = next(iter(self.classes))
            raise refused(path, f"it holds one class ({one!r}); at least two are needed")
        for label, names in self.classes.items():
            if len(names) < 2:
                needed = "at least two are needed, one to train and one to validate"
                raise refused(path, f"class {label!r} has {len(names)} image(s); {needed}{beside}")


class Folder(Source):
    """The folder ``dataset.path``. It is read where it lies, and never written."""

    in_the_image = True
    code = ("data/folder.py", "data/splits.py", "data/sources.py", "data/decode.py")

    def inspect(self, dataset: Dataset) -> DatasetInfo:
        """Return the number of classes and images, and the name and checksum of every image
        file."""
        folder, found = given_folder(str(dataset.path)), _listed(dataset)
        found.check(str(dataset.path))
        files = contents(
            folder, [folder / name for name in chain.from_iterable(found.classes.values())]
        )
        counts = [len(names) for names in found.classes.values()]
        trained = list(found.splits.values()).count("train") or train_images(
            counts, dataset.valid_fraction
        )
        return DatasetInfo(len(counts), trained, sum(counts) - trained, files)

    def make(self, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        """Return the manifest of the files. One that cannot be decoded is left out, with the
        reason."""
        given, found = self.base(dataset, folder, results), _listed(dataset)
        otherwise: dict[str, str | None] = {}
        unreadable = []
        for name in chain.from_iterable(found.classes.values()):
            try:
                otherwise[name] = read_otherwise(given / name)
            except StudyError as error:
                reason = str(error).removeprefix(f"{Path(name).name}: cannot be decoded: ")
                unreadable.append(LeftOut(name=name, reason=reason))
        sound = {
            label: [name for name in names if name in otherwise]
            for label, names in found.classes.items()
        }
        splits = {name: found.splits[name] for name in otherwise if found.splits}
        try:
            Listing(sound, splits, found.left_out).check(str(dataset.path))
        except StudyError as error:
            if not unreadable:
                raise
            first = f"first {unreadable[0].name!r}: {unreadable[0].reason}"
            raise StudyError(
                f"{error}; {len(unreadable)} file(s) cannot be decoded, {first}"
            ) from None
        labels: dict[str, str] = {}
        for label, names in sound.items():
            labels |= dict.fromkeys(names, label)
        manifest = manifest_of(
            dataset,
            given,
            labels,
            splits or assign_splits(sound, dataset.valid_fraction, dataset.seed),
            left_out=[*found.left_out, *unreadable],
            otherwise=[LeftOut(name=name, reason=why) for name, why in otherwise.items() if why],
        )
        return manifest.model_copy(update={"in_both": in_both(manifest.items)})

    def base(self, dataset: Dataset, folder: Path, results: Path) -> Path:
        """Return the user's folder."""
        return Path(str(dataset.path)).expanduser()


def read_otherwise(path: Path) -> str | None:
    """Return why stock fastai, which converts what it opened, reads a picture otherwise than our
    decoder; else None.

    Raise :class:`StudyError` if a run could not decode it.
    """
    try:
        with opened(path) as image:
            image.load()
            to_channels(upright(image), 3)
            turned = False
            # of damaged EXIF data, as of a damaged file, Pillow raises nearly anything
            with suppress(Exception):
                turned = image.getexif().get(ORIENTATION, 1) != 1
    except Exception as error:  # Pillow's decoders raise nearly anything on a broken file
        raise undecodable(path, error) from None
    if image.has_transparency_data:
        return (
            "its transparent pixels are white in our loop, and what lies under them in stock fastai"
        )
    return "it is turned by its EXIF data, which stock fastai leaves aside" if turned else None


def in_both(items: Sequence[Item]) -> list[InBoth]:
    """Return the pictures to validate on whose file is also one to train on, byte for byte."""
    trained = {item.sha256: item.name for item in reversed(items) if item.split == "train"}
    return [
        InBoth(valid=item.name, train=trained[item.sha256])
        for item in items
        if item.split == "valid" and item.sha256 in trained
    ]


def _listed(dataset: Dataset) -> Listing:
    """Return what lies in the user's folder. Raise :class:`StudyError` if it is no dataset as the
    study asks for it."""
    given = str(dataset.path)
    try:
        found = listing(given_folder(given), given)
    except OSError as error:
        where = f"{Path(error.filename).name}: " if error.filename else ""
        raise refused(given, f"cannot be read: {where}{error.strerror}") from None
    for key in ("valid_fraction", "seed") if found.splits else ():
        if (value := getattr(dataset, key)) != (default := Dataset.model_fields[key].default):
            raise StudyError(
                key=f"dataset.{key}",
                value=value,
                context=f"with {given!r}",
                why="folders above the classes say which pictures are held out",
                allowed=str(default),
            )
    return found


def endings(left_out: Sequence[LeftOut]) -> str:
    """Return the endings of files that lie in folders and were left out, the most frequent ones
    first; nothing without any."""
    found = Counter(Path(one.name).suffix for one in left_out if "/" in one.name).most_common(3)
    counts = [f"{count} {ending or 'without an ending'}" for ending, count in found]
    return f"; left out: {', '.join(counts)}" if counts else ""


def listing(folder: Path, given: str) -> Listing:
    """Return what lies in ``folder``, which the user ``given`` so. Links to folders are followed.

    Raise :class:`StudyError` if its folders are no classes and no parts of a split, with what to
    write.
    """
    found = dict(_walk(folder, "", (folder.resolve(),)))
    images = [name.split("/") for name, why in found.items() if why is None]
    tops = [path.name for path in _class_folders(folder)]
    depths = {top: [len(steps) for steps in images if steps[0] == top] for top in tops}
    kinds = {top: PARTS.get(top.lower()) for top in tops if depths[top]}
    parts = {top: kind for top, kind in kinds.items() if kind and max(depths[top]) > 2}
    if parts:
        _check_parts(parts, [top for top in kinds if top not in parts], given)
    elif len(set(kinds.values()) - {None}) > 1 and None not in kinds.values():
        raise refused(
            given,
            f"its folders {_these(kinds)} are named as the parts of a split, and hold no folder of "
            "a class",
            "a folder for each class in each part, such as train/bird and train/forest",
        )
    elif kinds and all(min(depths[top]) > 2 for top in kinds):
        first, *others = kinds
        if others:
            raise refused(
                given,
                f"its folders {_these(kinds)} hold folders, and no picture themselves",
                "a folder for each class, or train and val above the classes",
            )
        raise refused(
            given,
            f"its only folder with pictures, {first!r}, holds folders",
            _joined(given, first),
        )
    at = 1 if parts else 0
    _check_below(images, at, given)
    used = [folder / top for top, kind in parts.items() if kind != "test"] or [folder]
    classes: dict[str, list[str]] = {
        path.name: [] for path in chain.from_iterable(map(_class_folders, used))
    }
    splits: dict[str, Split] = {}
    left_out = []
    for name, reason in found.items():
        steps = name.split("/")
        kind = parts.get(steps[0])
        if kind == "test":
            reason = reason or TESTED
        elif len(steps) < at + 2:
            reason = reason or BESIDE
        if reason:
            left_out.append(LeftOut(name=as_text(name), reason=reason))
            continue
        classes[steps[at]].append(name)
        if kind:
            splits[name] = "train" if kind == "train" else "valid"
    return Listing(dict(sorted(classes.items())), splits, left_out)


def _walk(folder: Path, above: str, real: tuple[Path, ...]) -> Iterator[tuple[str, str | None]]:
    """Yield the name of what lies below ``folder``, and is no folder and not hidden, and why it is
    no image; ``real`` are the true paths of all folders around it."""
    for path in sorted(folder.iterdir()):
        name = f"{above}{path.name}"
        if _is_hidden(path.name):
            continue
        if not path.is_dir():
            yield name, _why_no_image(path, name)
        elif (target := path.resolve()) in real:
            yield name, "it is a link to a folder that holds it"
        elif _is_ours(path):
            yield name, OURS
        else:
            yield from _walk(path, f"{name}/", (*real, target))


def _is_hidden(name: str) -> bool:
    """Return whether nothing of this name counts, nor what lies in it: systems and programs made
    it."""
    return name.startswith(".") or name.lower() in OF_SYSTEMS


def _is_ours(path: Path) -> bool:
    """Return whether a folder is one of results: a start has locked it, or it holds a plan."""
    return Results(path).lock.exists() or any(path.glob("*/plan.json"))


def _why_no_image(path: Path, name: str) -> str | None:
    """Return why a path cannot be that of an image, or None if it can."""
    if name != as_text(name):
        return "its name is no UTF-8"
    if not path.is_file():
        return "it is not a file"
    if path.suffix.lower() not in SUFFIXES:
        return f"its suffix {path.suffix!r} is not that of an image"
    return None


def _class_folders(folder: Path) -> list[Path]:
    """Return the folders at the top. Raise :class:`StudyError` if one has no proper name."""
    tops = [
        path
        for path in folder.iterdir()
        if path.is_dir() and not _is_hidden(path.name) and not _is_ours(path)
    ]
    for path in tops:
        if (name := as_text(path.name)) != path.name:
            raise refused(
                name, "its name is no UTF-8; give the folder another name", context="as a class"
            )
    return sorted(tops)


def _check_parts(parts: dict[str, str], others: list[str], given: str) -> None:
    """Raise :class:`StudyError` unless the folders ``parts`` are one split, with no ``others``
    beside them."""
    kinds = list(parts.values())
    train = min(parts, key=lambda top: ("train", "valid", "test").index(parts[top]))
    if others:
        raise refused(
            given,
            f"beside {_these(parts)}, which look like the parts of a split, {others[0]!r} holds "
            "pictures",
            f"{_joined(given, train)}, or folders of classes with other names",
        )
    if kinds.count("train") > 1 or kinds.count("valid") > 1:
        raise refused(
            given, f"its folders {_these(parts)} are one part twice", "one folder for each part"
        )
    if "train" not in kinds or "valid" not in kinds:
        raise refused(
            given,
            f"its folders {_these(parts)} are no part to train on and one to validate on",
            f"{_joined(given, train)}, of which dataset.valid_fraction is held out",
        )


def _check_below(images: list[list[str]], at: int, given: str) -> None:
    """Raise :class:`StudyError` if a class holds folders as the parts of a split are named.

    ``at`` is the place of the class in the steps of a path.
    """
    inside: dict[str, set[str]] = {}
    for steps in images:
        if len(steps) > at + 2 and (kind := PARTS.get(steps[at + 1].lower())):
            inside.setdefault("/".join(steps[: at + 1]), set()).add(kind)
    for label, kinds in inside.items():
        if len(kinds) > 1:
            raise refused(
                given,
                f"the class {label!r} holds the parts of a split, which lie above the classes",
                f"train/{label}, val/{label}",
            )


def _these(names: Iterable[str]) -> str:
    return " and ".join(map(repr, names))


def _joined(given: str, name: str) -> str:
    return f"{given.rstrip('/')}/{name}"
