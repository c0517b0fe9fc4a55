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
from study.config.load import read_selection, read_study
from study.config.sections import Training
from study.config.selection import Selection
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import plan_all, read_all
from tests.conftest import HERE, ROOT, study_values


def plan_of(folder: Path, values: dict[str, Any], **config: Any) -> Plan:
    (folder / "tiny.yaml").write_text(pyyaml.safe_dump(values), encoding="utf-8")
    selection = read_selection({"studies": ["tiny"], **config})
    return plan_all(read_all(selection, [folder]), EngineChoice("none", ""), HERE)[0]


WORKERS = {"loader.kind": "workers", "loader.workers": 0}
FASTAI = {"training.loop": "fastai", "loader.kind": "workers"}
OWN = {"model.name": "no_such_package:make", "training.freeze_epochs": 0}
MAIN = OWN | {"model.name": "__main__:make"}


BROKEN_KEYS: list[tuple[str, dict[str, Any]]] = [
    ("training.batch_size", {"training.batch_size": 0}),
    ("training.batch_size", {"training.batch_size": "-1"}),
    ("training.batch_size", {"training.batch_size": "many"}),
    ("training.batch_size", {"training.batch_size": ["16", "1.5"]}),
    ("training.bach_size", {"training.bach_size": 16}),
    ("trainin", {"trainin.batch_size": 16}),
    ("factors", {"factors": {"training.bach_size": [1]}}),
    ("factors.training.epochs", {"factors": {"training.epochs": []}}),
    ("factors.training.epochs", {"factors": {"training.epochs": [1, 1]}}),
    ("training.epochs", {"training.epochs": 0}),
    ("training.loop", {"training.loop": "keras"}),
    ("loader.kind", {"training.loop": "fastai"}),
    ("training.threads", {"training.threads": 0}),
    ("training.processes", {"training.processes": 0}),
    ("training.strategy", {"training.strategy": "horovod"}),
    ("loader.sharding", {"loader.sharding": "random"}),
    ("loader.workers", {"loader.workers": -1}),
    ("dataset.valid_fraction", {"dataset.valid_fraction": 1.0}),
    ("dataset.images", {"dataset.images": 5, "dataset.classes": 4}),
    ("dataset.path", {"dataset.source": "folder"}),
    ("dataset.source", {"dataset.source": "search"}),
    ("dataset.terms", {"dataset.terms": {"a": "x", "b": "y"}}),
    ("factors.dataset.path", {"dataset.path": [{"a": "x", "c": "y"}]}),
    ("model.weights", {"model.weights": "nowhere.pt"}),
    ("training.batch_size", {"training.batch_size": [500]}),
    ("replicates", {"replicates": 0}),
    ("curve.x", {"curve": {"x": "training.epochs"}}),
    ("contrast", {"contrast": "training.epochs"}),
    ("factors", {"factors": ["device"]}),
    ("dataset.path", {"dataset.source": "folder", "dataset.path": "~nosuchuser/x"}),
    ("dataset.path", {"dataset.source": "folder", "dataset.path": "x" * 300}),
    ("model.weights", {"model.weights": "~nosuchuser/x.pt"}),
    ("device", {"device": "tpu"}),
    ("training.precision", {"training.precision": "tf32"}),
    ("training.precision", {"training.precision": "int4"}),
    ("training.optimizer", {"training.optimizer": "lion"}),
    ("training.schedule", {"training.schedule": "wild"}),
    ("training.validation", {"training.validation": "never"}),
    ("training.gradient_accumulation", {"training.gradient_accumulation": 0}),
    ("training.batch_size", {"training.gradient_accumulation": 3}),
    ("loader.pin_memory", {"loader.pin_memory": "maybe"}),
    ("loader.prefetch_factor", WORKERS | {"loader.prefetch_factor": 2}),
    ("loader.persistent_workers", WORKERS | {"loader.persistent_workers": True}),
    ("training.optimizer", FASTAI | {"training.optimizer": "sgd"}),
    ("training.schedule", FASTAI | {"training.schedule": "step"}),
    ("training.gradient_accumulation", FASTAI | {"training.gradient_accumulation": 2}),
    ("training.validation", FASTAI | {"training.validation": "end"}),
    ("loader.prefetch_factor", FASTAI | {"loader.prefetch_factor": 4}),
    ("model.name", OWN | {"model.name": "my/nets:make"}),
    ("model.name", OWN | {"model.name": "no_such_package.nets:make"}),
    ("model.name", MAIN),
    ("factors", {"training.epochs": list(range(1, 2001)), "seed": list(range(1000))}),
    ("model.weights", OWN | {"model.weights": "imagenet"}),
    ("", {"training.epochs": list(range(1, 201)), "seed": list(range(11)), "replicates": 1000}),
    ("overrides: dataset.path", {"dataset.source": "folder", "dataset.path": "\udcff\udcfe"}),
    ("time", {"time": "fit_minutes"}),
    ("time", {"time": "epoch_seconds"}),
]
"""The key that an error names, and the overrides that cause it."""


@pytest.mark.parametrize(("key", "overrides"), BROKEN_KEYS)
def test_bad_input_is_one_line_that_names_the_key_and_the_value(
    tmp_path: Path, key: str, overrides: dict[str, Any]
) -> None:
    """The lines themselves stand in golden_errors.txt."""
    with pytest.raises(StudyError) as caught:
        plan_of(tmp_path, study_values(), overrides=overrides)
    assert "\n" not in str(caught.value)
    assert caught.value.key == key


def test_a_study_that_is_no_file_of_text_is_one_line_and_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "endless.yaml").symlink_to("/dev/zero")
    (tmp_path / "huge.yaml").write_text("title: " + "x" * 2**20)
    (tmp_path / "other.yaml").write_text("title: x", encoding="utf-16")
    words = {"pipe": "it is not a file", "endless": "it is not a file", "huge": "more than 1 MiB", "other": "UTF-8"}
    for name, reason in words.items():
        with pytest.raises(StudyError, match=f"^{name}.yaml: cannot be read: .*{reason}"):
            strict_yaml.read_mapping(tmp_path / f"{name}.yaml")


BAD_SELECTIONS: list[tuple[str, dict[str, Any]]] = [
    ("studies", {"studies": ["nope"]}),
    ("studies", {"studies": []}),
    ("devices", {"devices": ["tpu"]}),
    ("container", {"container": "lxc"}),
    ("colour", {"colour": "red"}),
    ("size", {"size": "small"}),
]


@pytest.mark.parametrize(("key", "config"), BAD_SELECTIONS)
def test_a_bad_selection_names_its_key_too(tmp_path: Path, key: str, config: dict[str, Any]) -> None:
    with pytest.raises(StudyError) as caught:
        plan_of(tmp_path, study_values(), **config)
    assert caught.value.key.split(".")[0] == key


def test_of_very_many_unknown_keys_the_first_ones_are_named_and_the_others_counted(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as error:
        plan_of(tmp_path, study_values() | {f"unknown{number}": number for number in range(5000)})
    assert len(error.value.others) == 4999
    assert str(error.value).endswith("; and 4980 more")


def test_override_leaves_are_parsed_as_yaml(tmp_path: Path) -> None:
    overrides = {
        "training.batch_size": ["2", "4"],
        "training.drop_last": "false",
        "curve": "null",
        "training.learning_rate": "1e-3",
        "dataset.path": "./photos",
    }
    plan = plan_of(tmp_path, study_values(), overrides=overrides)
    assert plan.study.factors["training.batch_size"] == [2, 4]
    assert plan.study.training.drop_last is False
    assert plan.study.curve is None
    assert plan.study.training.learning_rate == 1e-3
    assert plan.study.dataset.path == "./photos"


def test_a_nested_override_changes_its_keys_and_keeps_the_others(tmp_path: Path) -> None:
    values = study_values(training={"epochs": 5, "batch_size": 4, "freeze_epochs": 0, "drop_last": False})
    plan = plan_of(tmp_path, values, overrides={"training": {"epochs": "2"}})
    assert plan.study.training.epochs == 2
    assert plan.study.training.freeze_epochs == 0
    assert plan.study.training.drop_last is False


def test_a_factor_can_be_named_with_its_section(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, study_values(), overrides={"factors.training.batch_size": ["8"]})
    assert plan.study.factors["training.batch_size"] == [8]
    with pytest.raises(StudyError) as caught:
        plan_of(tmp_path, study_values(), overrides={"factors.bogus": [1]})
    assert caught.value.key == "bogus"


@pytest.mark.parametrize("name", ["lr+wd", "my study", "data", "weights"])
def test_a_name_that_the_results_could_not_hold_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.yaml").write_text(pyyaml.safe_dump(study_values()), encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        read_study(name, [tmp_path], read_selection({}))
    assert (caught.value.key, caught.value.value) == ("studies", name)


def test_text_stays_as_it_was_given(tmp_path: Path) -> None:
    for text in ("/data/a #1", "it's", "@home", "[x"):
        plan = plan_of(tmp_path, study_values(), overrides={"dataset.path": text})
        assert plan.study.dataset.path == text


def test_an_override_of_a_factor_replaces_its_levels_and_a_list_makes_a_new_factor(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, study_values(), overrides={"training.batch_size": 2, "training.epochs": [1, 2]})
    assert plan.study.factors == {"device": ["cpu"], "training.batch_size": [2], "training.epochs": [1, 2]}


def test_devices_replace_the_levels_of_the_device(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, study_values(), devices="cuda")
    assert {run.settings.device for run in plan.runs} == {"cuda"}
    assert all(run.unavailable for run in plan.runs)


def test_the_shipped_studies_are_valid_and_the_default_is_quickstart() -> None:
    folder = ROOT / "config" / "studies"
    for path in [*folder.glob("*.yaml"), *ROOT.glob("replications/*/studies/*.yaml")]:
        assert read_study(path.stem, [path.parent], Selection.model_validate({})).question.endswith("?")
    config = strict_yaml.read(folder.parent / "config.yaml")
    assert read_selection(config).studies == ["quickstart"]


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


def test_a_study_that_is_no_yaml_or_holds_a_key_twice_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("title: [", encoding="utf-8")
    with pytest.raises(StudyError, match=r"broken\.yaml, line 1: not valid YAML"):
        read_study("broken", [tmp_path], read_selection({}))
    (tmp_path / "twice.yaml").write_text("title: a\ntitle: b\n", encoding="utf-8")
    (tmp_path / "odd.yaml").write_text("{[a]: 1}\n", encoding="utf-8")
    with pytest.raises(StudyError, match=r"odd\.yaml, line 1: .*a key must be plain text"):
        read_study("odd", [tmp_path], read_selection({}))
    with pytest.raises(StudyError, match=r"twice\.yaml, line 2: .*'title' is given twice"):
        read_study("twice", [tmp_path], read_selection({}))


STRANGE = [
    "[" * 3000,
    "[" * 3000 + "]" * 3000,
    "2026-13-45",
    "0b_",
    "0x_",
    "9" * 400,
    "9" * 5000,
    "0x" + "f" * 5000,
    "1e400",
    ".nan",
    "!!int foo",
    "!!int ''",
    "!!float foo",
    "!!timestamp x",
    "!!bool x",
    "!!set {a}",
    "!!set x",
    "!!binary aGk=",
    '"~/a\\0b"',
    '"\\ud800"',
    ":".join(["1"] * 20_000),
    ":".join(["1"] * 700_000),
    "&a [*a]",
    "&a {b: *a}",
]
KEYS = ["dataset.images", "seed", "training.learning_rate", "training.batch_size", "limits.memory_gib", "replicates"]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: f"{value[:12]} of {len(value)}")
@pytest.mark.parametrize("key", [*KEYS, "factors", "reduced", "training", "curve", "a\nb"])
def test_a_strange_value_is_one_line_in_a_file_and_in_an_override(tmp_path: Path, key: str, value: str) -> None:
    section, _, leaf = key.partition(".")
    text = f"{section}:\n  {leaf}: {value}\n" if leaf else f"{json.dumps(key)}: {value}\n"
    rest = {name: item for name, item in study_values().items() if name != section}
    (tmp_path / "tiny.yaml").write_text(pyyaml.safe_dump(rest) + text, encoding="utf-8")
    with pytest.raises(StudyError) as in_a_file:
        plan_all(read_all(read_selection({"studies": ["tiny"]}), [tmp_path]), EngineChoice("none", ""), HERE)
    with pytest.raises(StudyError) as as_an_override:
        plan_of(tmp_path, study_values(), overrides={key: value})
    for caught in (in_a_file, as_an_override):
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "value",
    [10**30, 10**400, 16**5000, float("inf"), float("nan")],
    ids=lambda value: f"{value:e}" if isinstance(value, float) else f"{value.bit_length()} bits",
)
@pytest.mark.parametrize("key", KEYS)
def test_a_number_that_no_run_could_use_is_one_line(tmp_path: Path, key: str, value: Any) -> None:
    """Snakemake's own reader of YAML hands numbers over that this project's refuses."""
    with pytest.raises(StudyError) as caught:
        plan_of(tmp_path, study_values(), overrides={key: value})
    assert str(caught.value).isprintable()
    with pytest.raises(StudyError):
        read_selection({"quiet_wait_seconds": value})


def test_a_date_is_text(tmp_path: Path) -> None:
    assert plan_of(tmp_path, study_values(), overrides={"title": "2026-11-22"}).study.title == "2026-11-22"


def test_keys_must_go_together_in_each_run_not_before_factors_are_applied(tmp_path: Path) -> None:
    """fastai's mixed precision is for a GPU: the study's own default device does not count where it is a factor."""
    training = {"loop": "fastai", "precision": "bf16", "freeze_epochs": 0, "batch_size": 4}
    values = study_values(training=training, loader={"kind": "workers"})
    assert plan_of(tmp_path, values, devices="cuda").runs
    with pytest.raises(StudyError) as caught:
        plan_of(tmp_path, values, devices="cpu")
    assert (caught.value.key, caught.value.value) == ("training.precision", "bf16")


def test_a_path_with_a_colon_stays_a_path() -> None:
    path = "/photos: 2026/a, b"
    selection = read_selection(
        {"overrides": {"dataset.path": path}, "images": {"cpu": "/images: 1/x.tar", "cuda": "null"}}
    )
    assert selection.overrides == {"dataset.path": path}
    assert (selection.images.cpu, selection.images.cuda) == ("/images: 1/x.tar", None)


def reduced_plan(tmp_path: Path, reduced: dict[str, Any], **selection: Any) -> Plan:
    return plan_of(tmp_path, study_values(reduced=reduced), **selection)


def test_a_reduced_size_takes_the_studys_reduced_keys_and_says_what_they_replaced(tmp_path: Path) -> None:
    keys = {"training.epochs": 7, "training.batch_size": [2], "replicates": 1}
    plan = reduced_plan(tmp_path, keys, size="reduced")
    assert {run.settings.training.epochs for run in plan.runs} == {7}
    assert {run.settings.training.batch_size for run in plan.runs} == {2}
    assert plan.study.replicates == 1
    values = study_values()
    assert plan.study.full == {
        "training.epochs": values["training"].get("epochs"),
        "training.batch_size": values["factors"]["training.batch_size"],
        "replicates": values["replicates"],
    }


def test_the_full_size_is_the_default_and_leaves_the_reduced_keys_alone(tmp_path: Path) -> None:
    plan = reduced_plan(tmp_path, {"training.epochs": 7})
    assert {run.settings.training.epochs for run in plan.runs} != {7}
    assert plan.study.full == {}


def test_an_override_counts_above_the_reduced_keys(tmp_path: Path) -> None:
    plan = reduced_plan(tmp_path, {"training.epochs": 7}, size="reduced", overrides={"training.epochs": "3"})
    assert {run.settings.training.epochs for run in plan.runs} == {3}
    assert plan.study.full == {}


def test_a_reduced_number_of_images_is_not_claimed_of_data_that_are_used_whole(tmp_path: Path) -> None:
    keys = {"dataset.images": 10, "replicates": 1}
    assert reduced_plan(tmp_path, keys, size="reduced").study.full.keys() == {"dataset.images", "replicates"}
    own = {"dataset.source": "cifar10", "dataset.image_size": 32}
    assert reduced_plan(tmp_path, keys, size="reduced", overrides=own).study.full.keys() == {"replicates"}


def test_reduced_keys_are_checked_at_any_size_and_full_is_no_key_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        reduced_plan(tmp_path, {"training.epoch": 7})
    assert (caught.value.key, caught.value.value) == ("reduced", "training.epoch")
    with pytest.raises(StudyError) as caught:
        plan_of(tmp_path, study_values(full={"replicates": 2}))
    assert (caught.value.key, caught.value.why) == ("full", "unknown key")


def test_the_level_of_a_null_control_is_no_key_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(StudyError) as error:
        plan_of(tmp_path, study_values(control="first"))
    assert (error.value.key, error.value.why) == ("control", "unknown key")
    with pytest.raises(StudyError) as error:
        plan_of(tmp_path, study_values(factors={"control": ["first", "second"]}, curve=None))
    assert (error.value.key, error.value.value) == ("factors", "control")
    assert len(plan_of(tmp_path, study_values(null_control=True)).runs) == 4


def test_the_time_to_a_target_needs_a_target(tmp_path: Path) -> None:
    curve = {"x": "training.batch_size", "y": "target_seconds"}
    with pytest.raises(StudyError) as caught:
        plan_of(tmp_path, study_values(curve=curve))
    assert (caught.value.key, caught.value.value) == ("curve.y", "target_seconds")
    with_one = study_values(curve=curve)
    with_one["training"] |= {"target_accuracy": 0.9}
    assert {run.settings.training.target_accuracy for run in plan_of(tmp_path, with_one).runs} == {0.9}
    as_factor = study_values(curve=None, time="target_seconds", factors={"training.target_accuracy": [0.6, 0.9]})
    assert len(plan_of(tmp_path, as_factor).runs) == 2


def test_the_margin_of_learning_changes_no_run(tmp_path: Path) -> None:
    """It is a key of the analysis: a study that asks for more of its settings need not be measured again."""
    keys = [[run.key for run in plan_of(tmp_path, study_values(learning_margin=m)).runs] for m in (0.02, 0.1)]
    assert keys[0] == keys[1]
    with pytest.raises(StudyError) as caught:
        plan_of(tmp_path, study_values(learning_margin=1.5))
    assert (caught.value.key, caught.value.value) == ("learning_margin", 1.5)


@pytest.mark.parametrize(
    ("rule", "training", "factor"),
    [
        ("constant", {"batch_size": 8}, 1.0),
        ("linear", {"batch_size": 8}, 2.0),
        ("square_root", {"batch_size": 8}, 2.0**0.5),
        ("linear", {"batch_size": 1}, 0.25),
        ("linear", {"batch_size": 2, "gradient_accumulation": 4}, 2.0),
        ("linear", {"batch_size": 4, "strategy": "ddp", "processes": 2}, 1.0),
        ("linear", {"batch_size": 4, "batch_size_is": "replica", "strategy": "ddp", "processes": 2}, 2.0),
    ],
)
def test_the_learning_rate_follows_the_images_of_a_step_of_all_processes(
    rule: str, training: dict[str, Any], factor: float
) -> None:
    given = {"learning_rate": 0.01, "learning_rate_rule": rule, "reference_batch_size": 4} | training
    assert Training.model_validate(given).scaled_learning_rate == pytest.approx(0.01 * factor)
