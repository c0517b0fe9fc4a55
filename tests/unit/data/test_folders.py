"""A folder of pictures as a user in a hurry gives it: read as it is meant, or refused with what to
write."""

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from study.artifacts.plan import write_plans
from study.artifacts.prepared import Manifest
from study.base.errors import StudyError
from study.config.sections import Dataset
from study.data.folder import listing, read_otherwise
from study.data.sources import inspect, source_of
from study.host.steps.prepare import prepare_dataset
from tests.conftest import repeats, tiny_plan
from tests.errors import refused

TWO = ["a/0.png", "a/1.png", "b/0.png", "b/1.png"]
SPLIT = [f"{part}/{label}/1.png" for part in ("train", "val") for label in "ab"]


HALVES = Image.fromarray(np.repeat(np.array([255, 0], np.uint8), 20)[:, None].repeat(60, 1))


def planted(folder: Path, names: list[str]) -> Dataset:
    """A folder with a picture of its own under each name; what has the suffix of no image is a
    text."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".png", ".jpg"):
            coarse = np.random.default_rng(sum(name.encode())).integers(
                0, 256, (6, 8, 3), dtype=np.uint8
            )
            Image.fromarray(coarse).resize((64, 48)).save(path)
        else:
            path.write_text("no picture")
    return Dataset(source="folder", path=str(folder))


def made(wanted: Dataset) -> Manifest:
    return source_of(wanted).make(wanted, Path(), Path())


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("loose.jpg", "it lies beside the folders of the classes"),
        ("a/Thumbs.db", "its suffix '.db' is not that of an image"),
        ("README.md", "its suffix '.md' is not that of an image"),
        ("a/IMG_1.HEIC", "its suffix '.HEIC' is not that of an image"),
    ],
)
def test_what_is_no_picture_of_a_class_is_left_out_with_the_reason(
    more: str, why: str, tmp_path: Path
) -> None:
    manifest = made(planted(tmp_path, [*TWO, more]))
    assert (manifest.classes, [item.name for item in manifest.items]) == (["a", "b"], TWO)
    assert [(one.name, one.reason) for one in manifest.left_out] == [(more, why)]


@pytest.mark.parametrize(
    "hidden",
    ["a/.ipynb_checkpoints/0.png", ".thumbs/a/0.png", "a/.DS_Store", "__MACOSX/a/0.png",
     "a/@eaDir/0.png/small.jpg"],
)  # fmt: skip
def test_what_systems_leave_is_passed_over(hidden: str, tmp_path: Path) -> None:
    manifest = made(planted(tmp_path, [*TWO, hidden]))
    assert ([item.name for item in manifest.items], manifest.left_out) == (TWO, [])


@pytest.mark.parametrize(
    ("ours", "kept"),
    [
        (["results/.lock"], "results"),
        (["results/.lock", "results/tiny/figures/0.png", "results/report.png"], "results"),
        (["a/project/results/tiny/plan.json", "a/project/results/blog/0.png"], "a/project/results"),
        (["of_a_friend/tiny/plan.json", "of_a_friend/tiny/figures/0.png"], "of_a_friend"),
    ],
)
def test_results_below_the_folder_are_no_pictures(
    ours: list[str], kept: str, tmp_path: Path
) -> None:
    manifest = made(planted(tmp_path, [*TWO, *ours]))
    assert (manifest.classes, [item.name for item in manifest.items]) == (["a", "b"], TWO)
    assert [(one.name, one.reason) for one in manifest.left_out] == [
        (kept, "it is a folder of results of studies")
    ]


@pytest.mark.parametrize(
    "parts",
    [("train", "val"), ("train", "valid"), ("Train", "VALIDATION")],
)
def test_folders_of_a_split_above_the_classes_are_the_split(
    parts: tuple[str, str], tmp_path: Path
) -> None:
    names = [
        f"{part}/{label}/{number}.png" for part in parts for label in "ab" for number in range(2)
    ]
    more = ["test/a/0.png", f"{parts[0]}/loose.png"]
    wanted = planted(
        tmp_path, [*names, *more, f"{parts[0]}/.cache/0.png", "annotations/boxes.json"]
    )
    manifest = made(wanted)
    assert (manifest.classes, manifest.train_images, manifest.valid_images) == (["a", "b"], 4, 4)
    assert {(item.split, item.name.partition("/")[0]) for item in manifest.items} == {
        ("train", parts[0]),
        ("valid", parts[1]),
    }
    assert {one.name for one in manifest.left_out} == {*more, "annotations/boxes.json"}
    assert inspect(wanted).train_images == 4


def test_a_class_that_is_called_train_is_a_class(tmp_path: Path) -> None:
    """Vehicles: the folder holds its pictures itself."""
    names = [f"{label}/{number}.png" for label in ("bus", "train") for number in range(2)]
    assert made(planted(tmp_path, names)).classes == ["bus", "train"]


@pytest.mark.parametrize(
    ("names", "why", "allowed"),
    [
        (["train/a/0.png", "test/a/0.png"],
         "no part to train on and one to validate on", "FOLDER/train, of which"),
        (["train/a/0.png", "train/b/0.png"],
         "no part to train on and one to validate on", "FOLDER/train, of which"),
        (["seg_train/a/0.png", "seg_val/a/0.png"],
         "hold folders, and no picture themselves", "train and val above"),
        (["test/a/0.png", "val/a/0.png"],
         "no part to train on and one to validate on", "FOLDER/val, of which"),
        ([*SPLIT, "valid/a/1.png"],
         "'train' and 'val' and 'valid' are one part twice", "one folder for each part"),
        ([*SPLIT, "sample/a/1.png"], "'sample' holds pictures", "FOLDER/train"),
        ([*SPLIT, "val/c/1.png"],
         "the class 'c' has no picture to train on", "the same classes in both parts"),
        ([*SPLIT, "train/c/1.png"],
         "the class 'c' has no picture to validate on", "the same classes in both parts"),
        ([*SPLIT, "train/c/1.heic", "val/c/1.heic"],
         "the class 'c' has no picture to train on; left out: 2 .heic", "the same classes in both parts"),
        (["README.md", "a/1.HEIC", "a/2.HEIC", "b/1.heic", "b/raw"],
         "none of its folders holds an image; left out: 2 .HEIC, 1 .heic, 1 without an ending", "files that end in .bmp, .gif"),
        ([*TWO, "c/1.CR2"], "class 'c' has 0 image(s)", ""),
        (["train/0.png", "test/1.png"], "hold no folder of a class", "train/bird and train/forest"),
        ([f"a/{one}" for one in ("train/0.png", "val/0.png")] + TWO,
         "the class 'a' holds the parts", "train/a, val/a"),
        ([f"photos/{one}" for one in TWO],
         "its only folder with pictures, 'photos', holds folders", "FOLDER/photos"),
        ([f"x/{one}" for one in SPLIT] + ["labels/train/0.txt"],
         "its only folder with pictures, 'x'", "FOLDER/x"),
    ],
)  # fmt: skip
def test_folders_that_may_mean_another_thing_are_refused_with_what_to_write(
    names: list[str], why: str, allowed: str, tmp_path: Path
) -> None:
    with refused("dataset.path", str(tmp_path)) as error:
        inspect(planted(tmp_path, names))
    assert why in error.why
    assert allowed in error.allowed.replace(str(tmp_path), "FOLDER")


@pytest.mark.parametrize(("key", "value"), [("valid_fraction", 0.3), ("seed", 7)])
def test_a_key_of_the_drawn_split_is_refused_where_folders_are_the_split(
    key: str, value: float, tmp_path: Path
) -> None:
    wanted = planted(tmp_path, SPLIT)
    with refused(f"dataset.{key}", value):
        inspect(wanted.model_copy(update={key: value}))


def test_linked_folders_are_followed_and_those_that_hold_themselves_named(tmp_path: Path) -> None:
    wanted = planted(tmp_path / "x", TWO)
    planted(tmp_path, ["elsewhere/2.png", "elsewhere/deep/3.png", "third/0.png", "third/5.png"])
    (tmp_path / "x" / "a" / "more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "x" / "c").symlink_to(tmp_path / "third")
    (tmp_path / "x" / "b" / "up").symlink_to("..")
    manifest = made(wanted)
    linked = {"a/more/2.png", "a/more/deep/3.png", "c/0.png", "c/5.png"}
    assert {item.name for item in manifest.items} == {*TWO, *linked}
    assert [(one.name, one.reason) for one in manifest.left_out] == [
        ("b/up", "it is a link to a folder that holds it")
    ]


def test_every_file_below_any_folder_is_used_or_left_out_once_or_the_folder_is_refused(
    tmp_path: Path,
) -> None:
    words = ["a", "b", "train", "val", "test", ".git", "__MACOSX", "Valid", "x.png", "y"]
    accepted = 0
    for seed in repeats(40, 2000):
        drawn, folder = random.Random(seed), tmp_path / str(seed)
        names = {
            "/".join(drawn.choices(words, k=drawn.randint(0, 3)) + [f"{n}.png"]) for n in range(12)
        }
        for name in [*names, *(TWO if seed % 2 else [])]:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        try:
            found = listing(folder, str(folder))
        except StudyError as error:
            assert error.key == "dataset.path"
            continue
        accepted += 1
        used = [name for names in found.classes.values() for name in names]
        every = (
            path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
        )
        below = sorted(name for name in every if not {".git", "__MACOSX"} & {*name.split("/")})
        assert sorted([*used, *(one.name for one in found.left_out)]) == below
        assert not found.splits or found.splits.keys() == {*used}
    assert accepted


def test_a_file_in_both_parts_is_named_and_one_that_looks_alike_is_another_picture(
    tmp_path: Path,
) -> None:
    wanted = planted(tmp_path, SPLIT)
    shutil.copy(tmp_path / "train/a/1.png", tmp_path / "val/b/copy.png")
    Image.open(tmp_path / "train/b/1.png").save(tmp_path / "val/b/encoded_anew.jpg", quality=95)
    assert [(one.valid, one.train) for one in made(wanted).in_both] == [
        ("val/b/copy.png", "train/a/1.png")
    ]


@pytest.mark.parametrize(
    ("name", "picture", "words"),
    [
        ("clear.png", Image.new("RGBA", (20, 20), (0, 0, 0, 0)), "transparent"),
        ("turned.jpg", HALVES, "EXIF"),
        ("plain.jpg", Image.new("RGB", (20, 20), (9, 200, 7)), None),
        ("print.jpg", Image.new("CMYK", (20, 20), (9, 200, 7, 0)), None),
        ("few.gif", Image.new("P", (20, 20), 3), None),
        ("bits.png", Image.new("1", (20, 20), 1), None),
    ],
)
def test_a_picture_that_fastai_reads_otherwise_says_so(
    name: str, picture: Image.Image, words: str | None, tmp_path: Path
) -> None:
    shown = Image.Exif()
    shown[0x0112] = 6 if name == "turned.jpg" else 1
    picture.save(tmp_path / name, exif=shown)
    said = read_otherwise(tmp_path / name)
    assert said is None if words is None else said and words in said


@pytest.mark.parametrize(
    ("alike", "names"),
    [
        (["caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}"], r"'cafe\u0301' and 'caf\xe9'"),
        (["Bird", "bird"], "'Bird' and 'bird'"),
        (["strasse", "straße"], r"'strasse' and 'stra\xdfe'"),
    ],
)  # fmt: skip
def test_two_classes_of_one_name_in_two_spellings_are_one_line(
    alike: list[str], names: str, tmp_path: Path
) -> None:
    wanted = planted(tmp_path, [*TWO, *(f"{label}/{n}.png" for label in alike for n in "01")])
    assert list(made(wanted).said(with_fastai=False))[1:] == [
        f"the classes {names} have one name in two spellings"
    ]


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_the_step_says_before_the_runs_what_is_odd_about_the_pictures(
    loop: str, tmp_path: Path
) -> None:
    wanted = planted(tmp_path / "x", [*SPLIT, "loose.jpg"])
    shutil.copy(tmp_path / "x/train/a/1.png", tmp_path / "x/val/b/same.png")
    Image.new("RGBA", (20, 20)).save(tmp_path / "x/train/a/clear.png")
    plan = tiny_plan(
        dataset={**wanted.model_dump(include={"source", "path"}), "image_size": 32},
        training={"loop": loop, "freeze_epochs": 0, "epochs": 1, "batch_size": 1},
        loader={"kind": "workers"},
        factors={"device": ["cpu"]},
        curve=None,
    )
    write_plans([plan], tmp_path)
    said = prepare_dataset(tmp_path / "tiny/plan.json", plan.runs[0].dataset, tmp_path, None)
    first, both, *otherwise = said.split("; ")
    assert first.endswith(
        "2 classes, 1 left out (first 'loose.jpg': it lies beside the folders of the classes)"
    )
    assert both == (
        "1 of the images to validate on are files that are also trained on, "
        "first 'val/b/same.png', which is 'train/a/1.png'"
    )
    assert [
        one.startswith("1 read otherwise by fastai, first 'train/a/clear.png'") for one in otherwise
    ] == ([True] if loop == "fastai" else [])
