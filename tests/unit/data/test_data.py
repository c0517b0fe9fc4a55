import os
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from study.artifacts.prepared import Manifest
from study.base.errors import StudyError
from study.config.sections import Dataset
from study.data import drawing
from study.data.decode import decode
from study.data.folder import read_otherwise
from study.data.sources import inspect, name_of, open_set, source_of
from study.data.splits import assign_splits
from tests.conftest import write_mnist, write_photos
from tests.errors import refused

TURNED = Image.Exif()
TURNED[0x0112] = 6
"""The picture is shown turned by 90 degrees clockwise."""


def dataset(**values: Any) -> Dataset:
    return Dataset.model_validate(values)


def own(photos: Path) -> Dataset:
    return dataset(source="folder", path=str(photos))


def make(wanted: Dataset, folder: Path) -> Manifest:
    """Make the data of ``wanted`` in ``folder``, which is also the folder of results."""
    return source_of(wanted).make(wanted, folder, folder)


def test_photographs_are_the_same_to_the_byte_on_a_second_drawing(tmp_path: Path) -> None:
    wanted = dataset(images=12, image_size=64)
    first, second = (make(wanted, tmp_path / name) for name in ("a", "b"))
    assert first == second
    other = make(dataset(images=12, image_size=64, seed=7), tmp_path / "c")
    assert {item.sha256 for item in other.items}.isdisjoint(item.sha256 for item in first.items)


def test_no_mean_colour_tells_the_two_classes_apart() -> None:
    """Learnable by shapes, not by colour: the best threshold on any channel's mean misses often."""
    means = np.array([np.asarray(drawing.photograph(1, n)).mean((0, 1)) for n in range(80)])
    bird = np.arange(80) % 2 == 0
    for channel in range(3):
        right = [
            max(hit, 1 - hit)
            for cut in means[:, channel]
            if (hit := ((means[:, channel] > cut) == bird).mean())
        ]
        assert max(right) < 0.85


def test_patterns_take_the_shapes_of_cifar10_and_mnist(tmp_path: Path) -> None:
    for name, values, shape in (
        ("cifar", {"classes": 10, "images": 60, "channels": 3, "image_size": 32}, (60, 32, 32, 3)),
        ("mnist", {"classes": 10, "images": 60, "channels": 1, "image_size": 28}, (60, 28, 28)),
    ):
        wanted = dataset(**values)
        manifest = make(wanted, tmp_path / name)
        assert np.load(tmp_path / name / "images.npy").shape == shape
        images = open_set(manifest, wanted, tmp_path / name, tmp_path)
        assert len(images.train) == manifest.train_images == 50
        assert len(images.valid) == 10
        assert (
            decode(images.stored[0], wanted.channels, wanted.image_size).shape[0] == wanted.channels
        )
        assert make(wanted, tmp_path / "again") == manifest


def test_patterns_are_learnable_but_not_trivial() -> None:
    """A nearest-mean classifier beats chance and makes mistakes."""
    images, labels = drawing.patterns(dataset(classes=4, images=400, channels=1, image_size=28))
    flat = images.reshape(400, -1).astype(float)
    means = np.stack([flat[:200][labels[:200] == c].mean(0) for c in range(4)])
    guess = ((flat[200:, None] - means) ** 2).sum(-1).argmin(1)
    assert 0.4 < (guess == labels[200:]).mean() < 1.0


def test_the_digits_are_scans_of_which_both_splits_have_every_digit_alike(tmp_path: Path) -> None:
    wanted = dataset(source="digits", classes=10, images=1280, image_size=16)
    manifest = make(wanted, tmp_path / "digits")
    images = open_set(manifest, wanted, tmp_path / "digits", tmp_path)
    assert (
        (len(images.train), len(images.valid))
        == (manifest.train_images, manifest.valid_images)
        == (1024, 256)
    )
    assert inspect(wanted).train_images == manifest.train_images
    for split in (images.train, images.valid):
        counts = np.bincount([images.labels[index] for index in split], minlength=10)
        assert counts.max() - counts.min() <= 1
    # The first scan is a nought: a ring of ink, whose middle is paper.
    ring = decode(images.stored[0], 3, 16)
    assert ring.shape == (3, 16, 16) and ring[0, 8].max() > 120 and ring[0, 7:9, 7:9].max() < 30
    assert (
        make(dataset(source="digits", classes=10, images=1280, seed=7), tmp_path / "again").sha256
        == manifest.sha256
    )


def test_the_split_is_stratified_and_stable() -> None:
    names = {"a": [f"a/{i}" for i in range(50)], "b": [f"b/{i}" for i in range(10)]}
    splits = assign_splits(names, 0.2, 42)
    assert sum(splits[name] == "valid" for name in names["a"]) == 10
    assert sum(splits[name] == "valid" for name in names["b"]) == 2
    assert assign_splits({k: v[::-1] for k, v in names.items()}, 0.2, 42) == splits
    assert assign_splits(names, 0.2, 43) != splits
    more = assign_splits({"a": names["a"] + ["a/new"], "b": names["b"]}, 0.2, 42)
    assert sum(more[name] != split for name, split in splits.items()) <= 1


def test_every_class_keeps_an_image_in_each_split() -> None:
    for fraction in (0.01, 0.99):
        splits = assign_splits({"a": ["1", "2"]}, fraction, 0)
        assert sorted(splits.values()) == ["train", "valid"]


def test_odd_images_are_decoded_to_the_shape_that_the_model_sees(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rgb = Image.fromarray(rng.integers(0, 256, (30, 50, 3), dtype=np.uint8))
    files: dict[str, tuple[Image.Image, dict[str, Any]]] = {
        "grey.jpg": (rgb.convert("L"), {}),
        "cmyk.jpg": (rgb.convert("CMYK"), {}),
        "palette.png": (rgb.convert("P"), {"transparency": 0}),
        "alpha.png": (rgb.convert("RGBA"), {}),
        "grey_alpha.png": (rgb.convert("LA"), {}),
        "bilevel.png": (rgb.convert("1"), {}),
        "rotated.jpg": (rgb, {"exif": TURNED}),
        "modern.webp": (rgb, {}),
        "animated.gif": (rgb.convert("P"), {"save_all": True, "append_images": [rgb.convert("P")]}),
        "dot.png": (rgb.resize((1, 1)), {}),
        "huge.jpg": (rgb.resize((9000, 6000)), {}),
        "UPPER.JPG": (rgb, {}),
    }
    for name, (image, options) in files.items():
        image.save(tmp_path / name, **options)
        read_otherwise(tmp_path / name)  # decodes it, too
        for channels in (1, 3):
            pixels = decode(tmp_path / name, channels, 16)
            assert pixels.shape == (channels, 16, 16), name
            assert pixels.dtype == np.uint8
            assert name == "dot.png" or pixels.std() > 1, name


COLOURS = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAEEAIAAAB2A9VqAAAAEElEQVR42mPgX4AdMlBPAgBbxiDR8zrbEgAAAA"
    "BJRU5ErkJggg=="
)
"""A PNG file of 4 x 4 pixels with 12 bits of each colour in 16: Pillow writes none."""


@pytest.mark.parametrize(
    "picture", [COLOURS, *(np.full((4, 4), 4000, kind) for kind in ("u2", "i4", "f4"))]
)
def test_a_picture_of_more_than_8_bits_is_left_out_by_name(picture: Any, photos: Path) -> None:
    deep = sorted(photos.iterdir())[0] / "deep.tif"
    if isinstance(picture, bytes):
        deep.write_bytes(picture)
    else:
        Image.fromarray(picture).save(deep)
    (left_out,) = make(own(photos), photos).left_out
    assert left_out.name == f"{deep.parent.name}/{deep.name}"
    assert left_out.reason.startswith("its pixels have more than 8 bits")


def test_an_exif_rotation_is_applied_and_damaged_exif_data_leave_the_image_as_it_is(
    tmp_path: Path,
) -> None:
    halves = np.zeros((20, 40, 3), np.uint8)
    halves[:, :20] = 255  # white on the left, which is shown on top
    Image.fromarray(halves).save(tmp_path / "a.jpg", exif=TURNED)
    pixels = decode(tmp_path / "a.jpg", 3, 16)
    assert pixels[:, 2].mean() > 200
    assert pixels[:, -3].mean() < 50
    whole = (tmp_path / "a.jpg").read_bytes()
    start = whole.index(b"Exif\0\0") + 6
    # each byte of the header and the one tag, broken in turn
    for offset in range(start, start + 26):
        (tmp_path / "b.jpg").write_bytes(whole[:offset] + b"\xff" + whole[offset + 1 :])
        assert decode(tmp_path / "b.jpg", 3, 8).shape == (3, 8, 8)
        read_otherwise(tmp_path / "b.jpg")


def test_transparent_pixels_are_white_not_what_lies_under_them(tmp_path: Path) -> None:
    Image.new("RGBA", (20, 20), (0, 0, 0, 0)).save(tmp_path / "t.png")
    assert decode(tmp_path / "t.png", 3, 8).min() == 255


def test_unreadable_files_are_left_out_with_the_reason(photos: Path) -> None:
    first = sorted(photos.iterdir())[0]
    (first / "text.jpg").write_text("no image")
    (first / "empty.png").write_bytes(b"")
    whole = (first / "000.jpg").read_bytes()
    (first / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (first / "notes.txt").write_text("not an image's name")
    manifest = make(own(photos), photos)
    assert {Path(item.name).name for item in manifest.left_out} == {
        "text.jpg",
        "empty.png",
        "cut.jpg",
        "notes.txt",
    }
    assert all(item.reason and str(photos) not in item.reason for item in manifest.left_out)
    assert len(manifest.items) == 20
    assert manifest.train_images == 16


def test_what_is_no_file_at_all_is_left_out_with_that_reason(photos: Path) -> None:
    """A pipe has no end, and a link to a photograph may lead nowhere: each was left out without a
    word."""
    first = sorted(photos.iterdir())[0]
    os.mkfifo(first / "pipe.png")
    (first / "gone.jpg").symlink_to(first / "nowhere.jpg")
    (first / "loop.jpg").symlink_to(first / "loop.jpg")
    (first / "endless.jpg").symlink_to("/dev/zero")
    left_out = {Path(item.name).name: item.reason for item in make(own(photos), photos).left_out}
    assert left_out == dict.fromkeys(
        ("pipe.png", "gone.jpg", "loop.jpg", "endless.jpg"), "it is not a file"
    )


def test_a_file_whose_name_is_no_utf8_is_left_out_under_a_name_that_can_be_read(
    photos: Path,
) -> None:
    first = sorted(photos.iterdir())[0]
    whole = (first / "000.jpg").read_bytes()
    (first / os.fsdecode(b"\xff\xfe.jpg")).write_bytes(whole)
    (first / os.fsdecode(b"sub\xff")).mkdir()
    (first / os.fsdecode(b"sub\xff") / "001.jpg").write_bytes(whole)
    assert name_of(own(photos), inspect(own(photos)).files)
    manifest = Manifest.model_validate_json(make(own(photos), photos).model_dump_json())
    names = {rf"{first.name}/\xff\xfe.jpg", rf"{first.name}/sub\xff/001.jpg"}
    assert {item.name: item.reason for item in manifest.left_out} == dict.fromkeys(
        names, "its name is no UTF-8"
    )
    assert len(manifest.items) == 20


@pytest.mark.parametrize("target", [".", ".."])
def test_a_class_that_is_a_link_to_all_classes_is_an_error_that_names_it(
    photos: Path, target: str
) -> None:
    (photos / "again").symlink_to(target)
    with pytest.raises(StudyError, match="class 'again' has 0 image"):
        inspect(own(photos))


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ({}, "holds no image in a subfolder"),
        ({"a": 5}, "it holds one class ('a')"),
        ({"a": 5, "b": 1}, "class 'b' has 1 image(s)"),
        ({"a": 5, "b": 5, "phone": 0}, "class 'phone' has 0 image(s)"),
    ],
)
def test_a_folder_that_is_no_dataset_is_one_clear_error(
    tmp_path: Path, classes: dict[str, int], words: str
) -> None:
    """A file with another ending is no image."""
    for folder in write_photos(tmp_path, classes).iterdir():
        (folder / "a.heic").write_bytes(b"x")
    with refused("dataset.path") as error:
        inspect(own(tmp_path))
    assert words in error.why


def test_a_class_that_loses_all_its_files_is_an_error_that_names_one(photos: Path) -> None:
    first = sorted(photos.iterdir())[0]
    for path in first.iterdir():
        path.write_text("broken")
    with pytest.raises(
        StudyError, match=r"has 0 image\(s\).*10 file\(s\) cannot be decoded, first '.*': it is not"
    ):
        make(own(photos), photos)


def test_a_folder_that_is_a_file_or_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "nowhere"):
        with refused("dataset.path", str(tmp_path / name)):
            inspect(own(tmp_path / name))


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_is_read_from_disk_packed_or_not(tmp_path: Path, packed: bool) -> None:
    raw = write_mnist(tmp_path / "given", packed)
    (raw / os.fsdecode(b"stray\xff")).write_text("")
    before = sorted(raw.iterdir())
    wanted = dataset(source="mnist", path=str(tmp_path / "given"), channels=1, image_size=28)
    assert name_of(wanted, inspect(wanted).files)
    manifest = make(wanted, tmp_path / "results")
    assert "stray" not in manifest.model_dump_json()
    assert (manifest.train_images, manifest.valid_images, len(manifest.classes)) == (30, 10, 10)
    images = open_set(manifest, wanted, tmp_path, tmp_path / "results")
    assert decode(images.stored[images.valid[0]], 1, 28).shape == (1, 28, 28)
    assert sorted(raw.iterdir()) == before  # a user's own folder is read alone


def test_an_interrupted_unpacking_is_taken_up_again(tmp_path: Path) -> None:
    test_mnist_is_read_from_disk_packed_or_not(tmp_path, packed=True)
    unpacked = tmp_path / "results" / "data" / "unpacked" / "MNIST" / "raw"
    (unpacked / "t10k-labels-idx1-ubyte").unlink()
    wanted = dataset(source="mnist", path=str(tmp_path / "given"), channels=1, image_size=28)
    assert make(wanted, tmp_path / "results").valid_images == 10


def test_a_folder_without_mnist_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"dataset\.path.*finds no mnist there"):
        make(dataset(source="mnist", path=str(tmp_path)), tmp_path)
