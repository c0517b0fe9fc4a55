import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml as pyyaml

from study.artifacts.plan import Plan
from study.base import strict_yaml
from study.base.errors import StudyError
from study.config.load import read_selection, read_study, write_first_study
from study.config.sections import Training
from study.config.selection import Selection
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan
from study.host.plan.workflow import Request, plans_for
from tests.conftest import HERE, ROOT, study_values
from tests.errors import refused


def plan_of(folder: Path, values: dict[str, Any], **config: Any) -> Plan:
    (folder / "tiny.yaml").write_text(pyyaml.safe_dump(values), encoding="utf-8")
    selection = read_selection({"studies": ["tiny"], **config})
    (name,) = selection.studies
    return make_plan(name, read_study(name, [folder], selection), EngineChoice("none", ""), HERE)


def test_a_study_that_is_no_file_of_text_is_one_line_and_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "endless.yaml").symlink_to("/dev/zero")
    (tmp_path / "huge.yaml").write_text("title: " + "x" * 2**20)
    (tmp_path / "other.yaml").write_text("title: x", encoding="utf-16")
    words = {
        "pipe": "it is not a file",
        "endless": "it is not a file",
        "huge": "more than 1 MiB",
        "other": "UTF-8",
    }
    for name, reason in words.items():
        with pytest.raises(StudyError, match=f"^{name}.yaml: cannot be read: .*{reason}"):
            strict_yaml.read_mapping(tmp_path / f"{name}.yaml")


def test_override_leaves_are_parsed_as_yaml_and_text_stays_as_it_was_given(tmp_path: Path) -> None:
    overrides = {
        "training.batch_size": ["2", "4"],
        "training.drop_last": "false",
        "training.learning_rate": "1e-3",
        "curve": "null",
        "title": "2026-11-22",
    }
    study = plan_of(tmp_path, study_values(), overrides=overrides).study
    assert study.factors["training.batch_size"] == [2, 4]
    assert (study.training.drop_last, study.training.learning_rate) == (False, 1e-3)
    assert (study.curve, study.title) == (None, "2026-11-22")
    for text in ("./photos", "/data/a #1", "it's", "@home", "[x"):
        selection = read_selection(
            {"overrides": {"dataset.source": "folder", "dataset.path": text}}
        )
        assert read_study("tiny", [tmp_path], selection).dataset.path == text


@pytest.mark.parametrize("text", ["010", "007", "1:30", "1:30.5", "-010"])
def test_no_digits_are_read_in_base_8_or_60(tmp_path: Path, text: str) -> None:
    assert strict_yaml.parse(f"x: {text}", "x") == {"x": text}
    with pytest.raises(StudyError, match=f"training.learning_rate: '{text}' is not allowed: "):
        plan_of(tmp_path, study_values(), overrides={"training.learning_rate": text})


def test_a_nested_override_changes_its_keys_and_keeps_the_others(tmp_path: Path) -> None:
    values = study_values(
        training={"epochs": 5, "batch_size": 4, "freeze_epochs": 0, "drop_last": False}
    )
    training = plan_of(tmp_path, values, overrides={"training": {"epochs": "2"}}).study.training
    assert (training.epochs, training.freeze_epochs, training.drop_last) == (2, 0, False)


@pytest.mark.parametrize("name", ["lr+wd", "my study", "data", "weights"])
def test_a_name_that_the_results_could_not_hold_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.yaml").write_text(pyyaml.safe_dump(study_values()), encoding="utf-8")
    with refused("studies", name):
        read_study(name, [tmp_path], read_selection({}))


@pytest.mark.parametrize("size", ["training.batch_size", "factors.training.batch_size"])
def test_an_override_of_a_factor_replaces_its_levels_and_a_list_makes_a_new_factor(
    size: str, tmp_path: Path
) -> None:
    plan = plan_of(
        tmp_path, study_values(), overrides={size: "2", "training.epochs": [1, 2]}, devices="cuda"
    )
    assert plan.study.factors == {
        "device": ["cuda"],
        "training.batch_size": [2],
        "training.epochs": [1, 2],
    }
    assert all(run.unavailable for run in plan.runs)
    with refused("bogus"):
        plan_of(tmp_path, study_values(), overrides={"factors.bogus": [1]})


def test_the_shipped_studies_are_valid_and_the_default_is_quickstart() -> None:
    folder = ROOT / "config" / "studies"
    for path in [*folder.glob("*.yaml"), *ROOT.glob("replications/*/studies/*.yaml")]:
        assert read_study(path.stem, [path.parent], Selection.model_validate({})).question.endswith(
            "?"
        )
    config = strict_yaml.read(folder.parent / "config.yaml")
    assert read_selection(config).studies == ["quickstart"]


def test_a_first_study_is_written_once_and_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path("mine.yaml")
    write_first_study(file)
    study = read_study("mine.yaml", [], read_selection({}))
    assert make_plan("mine", study, EngineChoice("none", "asked for"), HERE).runs
    text = file.read_text(encoding="utf-8")
    assert "study start mine.yaml" in text
    for part in text.split("\n\n"):
        assert part.startswith("# "), part
    with pytest.raises(StudyError, match="is there already and is kept"):
        write_first_study(file)
    for wrong in ("mine", "mine.txt", "my study.yaml", "weights.yaml"):
        with refused("file"):
            write_first_study(Path(wrong))
    assert list(tmp_path.iterdir()) == [tmp_path / file]


def test_a_study_is_called_by_its_name_or_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name, title in (("a.yaml", "Here"), ("sub/a.yaml", "Below")):
        Path(name).write_text(pyyaml.safe_dump(study_values(title=title)), encoding="utf-8")
    config = {"container": "none", "devices": ["cpu"]}
    for called, title in (("a", "Below"), ("a.yaml", "Here"), ("sub/a.yaml", "Below")):
        (plan,) = plans_for(
            Request(config=config | {"studies": [called]}), [Path("sub")], Path("results")
        )
        assert (plan.name, plan.study.title) == ("a", title)
        assert plan.start.files == ({} if called == "a" else {"a": called})
    for wrong in (["b"], ["b.yaml"], ["a.yaml", "sub/a.yaml"], ["a", "a.yaml"]):
        with refused("studies"):
            plans_for(Request(config=config | {"studies": wrong}), [Path("sub")], Path("results"))


SHIPPED = sorted([*(ROOT / "config").rglob("*.yaml"), *ROOT.glob("replications/*/studies/*.yaml")])


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_file_names_the_schema_that_an_editor_checks_it_with(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    name = first.removeprefix("# yaml-language-server: $schema=")
    schema = json.loads((path.parent / name).read_text(encoding="utf-8"))
    values = strict_yaml.read(path)
    jsonschema.validate(values, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values | {"colour": "red"}, schema)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title: [", "line 1: not valid YAML"),
        ("{[a]: 1}\n", "line 1: .*a key must be plain text"),
        ("title: a\ntitle: b\n", "line 2: .*'title' is given twice"),
    ],
)
def test_a_study_that_is_no_yaml_or_holds_a_key_twice_is_one_line(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "odd.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=rf"odd\.yaml, {words}"):
        read_study("odd", [tmp_path], read_selection({}))


def test_keys_must_go_together_in_each_run_not_before_factors_are_applied(tmp_path: Path) -> None:
    """fastai's mixed precision is for a GPU: the study's own default device does not count where it
    is a factor."""
    training = {"loop": "fastai", "precision": "bf16", "freeze_epochs": 0, "batch_size": 4}
    values = study_values(training=training, loader={"kind": "workers"})
    assert plan_of(tmp_path, values, devices="cuda").runs
    with refused("training.precision", "bf16"):
        plan_of(tmp_path, values, devices="cpu")


def test_a_reduced_size_takes_the_studys_reduced_keys_and_says_what_they_replaced(
    tmp_path: Path,
) -> None:
    values = study_values(
        reduced={"training.epochs": 7, "training.batch_size": [2], "replicates": 1}
    )
    plan = plan_of(tmp_path, values, size="reduced")
    assert {
        (run.settings.training.epochs, run.settings.training.batch_size) for run in plan.runs
    } == {(7, 2)}
    assert plan.study.replicates == 1
    assert plan.study.full == {
        "training.epochs": values["training"].get("epochs"),
        "training.batch_size": values["factors"]["training.batch_size"],
        "replicates": values["replicates"],
    }


def test_an_override_counts_above_the_reduced_keys_and_the_full_size_is_the_default(
    tmp_path: Path,
) -> None:
    values = study_values(reduced={"training.epochs": 7})
    for selection, epochs in (
        ({"size": "reduced", "overrides": {"training.epochs": "3"}}, 3),
        ({}, 1),
    ):
        plan = plan_of(tmp_path, values, **selection)
        assert {run.settings.training.epochs for run in plan.runs} == {epochs}
        assert plan.study.full == {}


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [({"reduced": {"training.epoch": 7}}, "reduced", "training.epoch"),
     ({"full": {"replicates": 2}}, "full", {"replicates": 2}),
     ({"control": "first"}, "control", "first"),
     ({"factors": {"control": ["first", "second"]}, "curve": None}, "factors", "control"),
     ({"curve": {"x": "training.batch_size", "y": "target_seconds"}}, "curve.y", "target_seconds"),
     ({"learning_margin": 1.5}, "learning_margin", 1.5)],
)  # fmt: skip
def test_what_no_study_may_say_is_refused(
    tmp_path: Path, changes: dict[str, Any], key: str, value: Any
) -> None:
    with refused(key, value):
        plan_of(tmp_path, study_values(**changes))


DDP = {"strategy": "ddp", "processes": 2}


@pytest.mark.parametrize(
    ("rule", "training", "factor"),
    [
        ("constant", {"batch_size": 8}, 1.0),
        ("linear", {"batch_size": 8}, 2.0),
        ("square_root", {"batch_size": 8}, 2.0**0.5),
        ("linear", {"batch_size": 1}, 0.25),
        ("linear", {"batch_size": 2, "gradient_accumulation": 4}, 2.0),
        ("linear", DDP | {"batch_size": 4}, 1.0),
        ("linear", DDP | {"batch_size": 4, "batch_size_is": "replica"}, 2.0),
    ],
)
def test_the_learning_rate_follows_the_images_of_a_step(
    rule: str, training: dict[str, Any], factor: float
) -> None:
    given = {"learning_rate": 0.01, "learning_rate_rule": rule, "reference_batch_size": 4}
    found = Training.model_validate(given | training).scaled_learning_rate
    assert found == pytest.approx(0.01 * factor)
