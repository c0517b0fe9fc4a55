"""One golden file: the lines of the errors of a study, of a selection and of the rules between
keys.

Other tests compare the fields of an error. After a change of words, write the file again, and read
the difference:

    python -m tests.unit.config.test_golden_errors
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from study.base.errors import StudyError
from study.config.settings import Settings, with_values
from tests.conftest import study_values
from tests.unit.config.test_config import plan_of
from tests.unit.config.test_rules import BROKEN

GOLDEN = Path(__file__).with_name("golden_errors.txt")
LONGEST = 200
"""Characters of a line that are compared: a list of all keys is no subject here."""
OWN, FOLDER, ON_CPU = {"training.freeze_epochs": 0}, {"dataset.source": "folder"}, {"device": "cpu"}
MODULES = ("my/nets", "no_such_package.nets", "__main__", "x" * 300, "é.a." * 90 + "é")


def each(key: str, *values: Any, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    """A key with each of some values that it does not allow."""
    return [(key, more | {key: value}) for value in values]


BROKEN_KEYS: list[tuple[str, dict[str, Any]]] = [
    *each("training.batch_size", 0, "-1", "many", ["16", "1.5"], [500]),
    *each("training.bach_size", 16),
    ("trainin", {"trainin.batch_size": 16}),
    *each("factors", {"training.bach_size": [1]}, ["device"]),
    ("factors.training.epochs", {"factors": {"training.epochs": []}}),
    ("factors.training.epochs", {"factors": {"training.epochs": [1, 1]}}),
    *each("training.epochs", 0),
    *each("training.loop", "keras"),
    ("loader.kind", {"training.loop": "fastai"}),
    *each("training.threads", 0),
    *each("training.processes", 0),
    *each("training.strategy", "horovod"),
    *each("loader.workers", -1),
    *each("dataset.valid_fraction", 1.0),
    ("dataset.images", {"dataset.images": 5, "dataset.classes": 4}),
    *each("dataset.terms", {"a": "x", "b": "y"}),
    ("factors.dataset.path", {"dataset.path": [{"a": "x", "c": "y"}]}),
    *each("replicates", 0, {"until": "5%"}),
    ("curve.x", {"curve": {"x": "training.epochs"}}),
    *each("contrast", "training.epochs"),
    *each("dataset.path", "~nosuchuser/x", "x" * 300, **FOLDER),
    *each("model.weights", "nowhere.pt", "~nosuchuser/x.pt"),
    *each("device", "npu"),
    *each("training.precision", "tf32", "int4"),
    *each("training.optimizer", "lion"),
    *each("training.schedule", "wild"),
    *each("training.validation", "never"),
    *each("training.gradient_accumulation", 0),
    ("training.batch_size", {"training.gradient_accumulation": 3}),
    *each("loader.pin_memory", "maybe"),
    *each("model.name", *(f"{bad}:make" for bad in MODULES), **OWN),
    ("factors", {"training.epochs": list(range(1, 2001)), "seed": list(range(1000))}),
    ("", {"training.epochs": list(range(1, 201)), "seed": list(range(11)), "replicates": 1000}),
    ("overrides: dataset.path", FOLDER | {"dataset.path": "\udcff\udcfe"}),
    *each("time", "fit_minutes", "epoch_seconds"),
    *each("names", *({bad: ON_CPU} for bad in ("", "a" * 41, "stock, fastai", "CPU", "8"))),
    *each("names", {"one": ON_CPU, "other": ON_CPU}),
    ("names.stock", {"names": {"stock": {"training.loop": "fastai"}}}),
    ("names.stock", {"names": {"stock": {}}}),
    ("names.stock.device", {"names": {"stock": {"device": "npu"}}}),
]
"""The key that an error names, and the overrides that cause it. Rules between keys are broken in
test_rules.py."""
BAD_SELECTIONS: list[tuple[str, dict[str, Any]]] = [
    ("studies", {"studies": ["nope"]}),
    ("studies", {"studies": []}),
    ("devices.0", {"devices": ["npu"]}),
    ("container", {"container": "lxc"}),
    ("colour", {"colour": "red"}),
    ("size", {"size": "small"}),
]


def lines(folder: Path) -> Iterator[str]:
    """Yield the line of each error, once the key that it names is the one that was to be named."""
    for key, config in [
        *((key, {"overrides": changes}) for key, changes in BROKEN_KEYS),
        *BAD_SELECTIONS,
    ]:
        with pytest.raises(StudyError) as caught:
            plan_of(folder, study_values(), **config)
        assert caught.value.key == key, caught.value
        yield str(caught.value)
    for _, changes in BROKEN:
        with pytest.raises(StudyError) as caught:
            Settings.of_values(with_values({}, changes), "study x")
        yield str(caught.value)


def shortened(folder: Path) -> str:
    found = (line if len(line) <= LONGEST else f"{line[:LONGEST]}..." for line in lines(folder))
    return "".join(f"{line}\n" for line in sorted(set(found)))


def test_the_errors_say_what_the_golden_file_says(tmp_path: Path) -> None:
    assert shortened(tmp_path).splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        GOLDEN.write_text(shortened(Path(folder)), encoding="utf-8")
