import os
import re
import time
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.artifacts.block import blocks_of, made_of, page_made_of
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.run import Run
from study.config import own_model
from study.host.engine.engine_choice import EngineChoice
from study.host.plan import workflow
from study.host.plan.make import orders_of
from study.host.plan.workflow import Workflow
from tests.conftest import plan_at, plant_package, study_values, tiny_plan
from tests.errors import refused
from tests.unit.artifacts.test_records import write_records
from tests.unit.host.test_engines import BUILT


def test_names_are_readable_unique_and_safe() -> None:
    plan = tiny_plan(
        factors={"device": ["cpu", "cuda"], "training.batch_size": [4, 8]}, replicates=2
    )
    names = [run.name for run in plan.runs]
    assert {"bs4-cpu-r1", "bs8-cuda-r2"} <= set(names)
    assert len(set(names)) == len(names) == 8
    odd = tiny_plan(
        factors={"training.learning_rate": [0.1, 0.01], "training.drop_last": [True, False]},
        curve=None,
    )
    assert len({run.name for run in odd.runs}) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", run.file) for run in [*plan.runs, *odd.runs])


def test_each_block_holds_every_configuration_once_in_an_order_of_its_own() -> None:
    eight: dict[str, Any] = {"factors": {"training.batch_size": list(range(1, 9))}, "replicates": 4}
    plan = tiny_plan(**eight)
    orders = []
    for block in range(1, 5):
        runs = [run for run in plan.runs if run.block == block]
        orders.append(tuple(run.setting.levels["training.batch_size"] for run in runs))
        assert Counter(orders[-1]) == Counter(range(1, 9))
        assert [run.position for run in runs] == list(range(8 * block - 7, 8 * block + 1))
    assert len(set(orders)) == 4
    assert tiny_plan(**eight) == plan
    assert [run.name for run in tiny_plan(**eight, seed=2).runs] != [run.name for run in plan.runs]


def test_three_settings_follow_each_other_and_themselves_about_equally_often() -> None:
    """Of 35 runs after another each of the nine pairs has four at best. Of orders that are drawn
    alone, a setting follows itself in 3.7."""
    same, seeds = 0, range(20)
    for seed in seeds:
        flat = [*chain.from_iterable(orders_of([12] * 3, seed))]
        follow = Counter(pairwise(flat))
        assert max(follow.values()) <= 7
        same += sum(follow[index, index] for index in range(3))
        places = Counter((run % 3, index) for run, index in enumerate(flat))
        assert 1 <= min(places.values()) <= max(places.values()) <= 7
    assert 5 < same / len(seeds) < 12


def test_blocks_that_are_added_keep_the_orders_of_the_earlier_ones() -> None:
    for few, more in (([3] * 4, [7] * 4), ([2] * 2, [5] * 2), ([1, 3, 3], [1, 3, 5])):
        earlier = [*orders_of(few, 5)]
        assert [*orders_of(more, 5)][: len(earlier)] == earlier
    assert [*map(len, orders_of([1, 3, 2], 1))] == [3, 2, 1]


def files_of(**changes: Any) -> set[str]:
    """The names of the records of a tiny study."""
    return {run.file for run in tiny_plan(**changes).runs}


def test_what_is_added_or_dropped_keeps_the_records_of_the_others() -> None:
    assert files_of() < files_of(
        factors={"device": ["cpu"], "training.batch_size": [2, 4, 8]}, replicates=3
    )
    few, others = (
        files_of(
            factors={"training.batch_size": [2, 4, 8]},
            only=[{"training.batch_size": size} for size in sizes],
        )
        for sizes in ((2, 4), (4, 8))
    )
    assert len(few & others) == 1


def test_data_of_a_folder_are_in_the_key_by_names_and_contents_so_that_a_copy_keeps_what_is_measured(
    photos: Path,
) -> None:
    data = {"dataset": {"source": "folder", "path": str(photos), "image_size": 32}}
    before = files_of(**data)
    first, second = [*photos.rglob("*.jpg")][:2]
    os.utime(first, ns=(1, 1))
    assert files_of(**data) == before
    first.write_bytes(second.read_bytes())
    changed = files_of(**data)
    first.unlink()
    assert len(before | changed | files_of(**data)) == 3 * len(before)


def own_run(name: str, **changes: Any) -> Run:
    """The first run of a study whose model is a user's own."""
    return tiny_plan(model={"name": name, "weights": "none"}, **changes).runs[0]


def write(folder: Path, files: dict[str, str]) -> None:
    """Write these files, and the folders that they need."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_a_users_own_model_is_in_the_key_by_its_code_and_what_it_is_tried_on(here: Path) -> None:
    def weights(classes: int = 2) -> str:
        dataset = {"images": 40, "classes": classes, "channels": 3, "image_size": 32}
        return own_run("nets.small:make", dataset=dataset).weights

    write(here, {"nets/small.py": "a = 1"})
    before = weights()
    assert weights() == before
    assert weights(classes=3) != before
    write(here, {"nets/helper.py": "b = 1"})
    assert weights() != before


@pytest.mark.parametrize(
    ("name", "module", "beside"),
    [
        ("nets:mine", "nets.py", "blocks.py"),
        ("zoo.small:mine", "zoo/small.py", "zoo/sizes/all.json"),
        ("zoo.deep.small:mine", "zoo/deep/small.py", "zoo/deep/weights.bin"),
        ("zoo.deep.small:mine", "zoo/deep/small.py", "zoo/__init__.py"),
    ],
)
def test_a_changed_file_beside_a_users_own_model_is_a_new_run(
    name: str, module: str, beside: str, here: Path
) -> None:
    write(here, {beside: "1", module: ""})
    before = own_run(name).key
    assert own_run(name).key == before
    write(here, {beside: "2"})
    assert own_run(name).key != before


def test_a_model_in_a_package_of_several_has_its_own_folder_in_its_key_and_no_other(
    here: Path,
) -> None:
    others = (
        "docs/other/networks.py",
        "docs/README.md",
        "notes.md",
        "docs/mine/.hidden",
        "docs/mine/results/record.json",
        "docs/mine/__pycache__/networks.cpython-311.pyc",
        "docs/mine/venv/lib.py",
    )
    write(here, dict.fromkeys(("docs/__init__.py", "docs/mine/networks.py", *others), ""))
    before = own_run("docs.mine.networks:small").key
    write(here, dict.fromkeys(others, "changed = True"))
    assert own_run("docs.mine.networks:small").key == before


def test_a_model_among_too_many_files_or_too_large_ones_is_refused_before_they_are_read(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_model, "MOST_FILES", 3)
    write(here, dict.fromkeys([f"zoo/{number}.py" for number in range(4)], ""))
    with refused("model.name", "zoo.small:mine"):
        own_run("zoo.small:mine")
    for number in (2, 3):
        (here / "zoo" / f"{number}.py").unlink()
    write(here, {"zoo/large.bin": ""})
    os.truncate(here / "zoo" / "large.bin", (own_model.LARGEST_MIB << 20) + 1)
    with refused("model.name", "zoo.small:mine"):
        own_run("zoo.small:mine")


def test_another_torch_in_the_same_checkout_is_a_new_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fastai = {"loop": "fastai", "freeze_epochs": 0, "batch_size": 4}

    def planned(**changed: str) -> list[str]:
        """The keys of a run of each loop in an environment with other versions of some packages."""
        installed = {"torch": "1", "cudnn": "1", "fastai": "1", "snakemake": "1"} | changed
        folder = tmp_path / "-".join(installed.values())
        folder.mkdir()
        with monkeypatch.context() as environment:
            environment.syspath_prepend(str(folder))
            for name, version in installed.items():
                plant_package(folder, name, version, *(["cudnn"] if name == "torch" else []))
            plans = [tiny_plan(), tiny_plan(training=fastai, loader={"kind": "workers"})]
            assert [plan.packages["torch"] for plan in plans] == [installed["torch"]] * 2
        return [plan.runs[0].key for plan in plans]

    before, other = planned(), planned(fastai="2")
    three = zip(before, planned(torch="2"), planned(cudnn="2"), strict=True)
    assert all(len(set(keys)) == 3 for keys in three)
    assert [one == two for one, two in zip(before, other, strict=True)] == [True, False]
    assert planned(snakemake="2") == before


def test_what_is_installed_on_the_host_is_in_no_key_of_a_run_in_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def planned(identity: str) -> Plan:
        there = BUILT.model_copy(update={"identity": identity})
        return plan_at(EngineChoice("docker", "asked for", {"cpu": there, "cuda": there}))

    plan = planned("00000000")
    plant_package(tmp_path, "torch", "99.0")
    assert planned("00000000") == plan
    assert plan.packages == {}
    assert planned("11111111").runs[0].key != plan.runs[0].key


def test_a_study_without_factors_is_one_run_a_replicate() -> None:
    plan = tiny_plan(factors={}, curve=None, replicates=2)
    assert [run.name for run in plan.runs] == ["run-r1", "run-r2"]


def test_levels_are_those_that_were_checked() -> None:
    rate = "training.learning_rate"
    plan = tiny_plan(factors={rate: [1, 0.1]}, curve={"x": rate})
    assert plan.study.factors == {rate: [1.0, 0.1]}
    assert {repr(run.setting.levels[rate]) for run in plan.runs} == {"1.0", "0.1"}


def test_levels_that_are_the_same_once_checked_and_a_curve_over_words_are_one_error() -> None:
    with refused("factors"):
        tiny_plan(factors={"training.learning_rate": [1, 1.0]}, curve=None)
    with refused("curve.x", "model.name"):
        tiny_plan(factors={"model.name": ["resnet18", "resnet34"]}, curve={"x": "model.name"})


def test_blocks_have_the_priorities_of_their_order_below_all_preparation(tmp_path: Path) -> None:
    plan = tiny_plan(factors={"training.batch_size": [2, 4, 8]}, replicates=100)
    flow = Workflow([plan], Results(tmp_path))
    for place, (study, block) in enumerate(flow.blocks):
        assert flow.order(study, block) == 100 - place
        assert len(flow.preparation(study, block)) == 3
        assert f"block {place + 1} of 100" in flow.told(study, block)
    assert flow.first == 101
    assert flow.order("tiny", "1-00000000") == 0


@pytest.mark.parametrize(
    "change", ["nothing", "plan", "block", "record", "figures", "clock", "manifest", "page"]
)
def test_what_is_not_made_of_what_is_there_is_outdated_and_stays_until_it_is_made_anew(
    change: str, tmp_path: Path
) -> None:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(study_values()), encoding="utf-8")
    files = Results(tmp_path / "results")
    config: dict[str, Any] = {"studies": ["tiny"], "container": "none", "devices": ["cpu"]}
    plan = workflow.planned(workflow.Request(config=config), [tmp_path], files.root).plans[0]
    assert not files.root.exists()
    write_plans([plan], files.root)
    write_records(plan, files.records("tiny"))
    for block in blocks_of(plan, files):
        block.write(files)
    manifest = files.manifest(plan.runs[0].dataset)
    for path in (files.fit("tiny"), files.timings("tiny"), files.epochs("tiny"), files.report):
        path.write_text("")
    files.figures("tiny").mkdir()
    files.made_of("tiny").write_text(made_of(plan.text, "tiny", files))
    files.report_made_of.write_text(page_made_of(["tiny"], files))
    outdated = {files.fit("tiny"), files.report}
    if change == "plan":
        config["quiet_wait_seconds"] = 7
    elif change == "block":
        next(files.blocks("tiny").iterdir()).unlink()
    elif change == "record":
        path = files.record("tiny", plan.runs[0].file)
        path.unlink()
        manifest.parent.mkdir(parents=True)
        manifest.write_text("{")
        outdated.add(manifest)  # and it is to be read
    elif change == "figures":
        files.figures("tiny").rmdir()
    elif change == "clock":
        os.utime(files.timings("tiny"), (time.time() + 3600,) * 2)
    elif change == "manifest":
        manifest.parent.mkdir(parents=True)
        manifest.write_text("{")
    elif change == "page":
        files.report_made_of.unlink()
    before = {path: path.stat().st_mtime_ns for path in files.root.rglob("*")}
    flow = workflow.planned(workflow.Request(config=config), [tmp_path], files.root)
    if change in ("nothing", "manifest"):
        outdated = set()
    elif change == "page":
        outdated = {files.report}
    assert flow.outdated == outdated
    assert (files.start(1) in flow.targets) == bool(outdated)
    assert {path: path.stat().st_mtime_ns for path in files.root.rglob("*")} == before


def test_data_are_prepared_by_a_study_that_can_make_a_run_here(tmp_path: Path) -> None:
    able = tiny_plan()
    absent = [run.model_copy(update={"unavailable": "no GPU"}) for run in able.runs]
    dataset = able.runs[0].dataset
    elsewhere = able.model_copy(update={"name": "elsewhere", "runs": absent})
    assert Workflow([elsewhere, able], Results(tmp_path)).dataset_study(dataset) == able.name
    assert Workflow([elsewhere], Results(tmp_path)).dataset_study(dataset) == "elsewhere"


def test_a_block_waits_for_its_preparation_and_one_that_is_there_for_nothing(
    tmp_path: Path,
) -> None:
    """Snakemake would make what is missing, and fails a job whose output is older than an input."""
    plan, files = tiny_plan(), Results(tmp_path)
    run = plan.runs[0]
    needed = [files.manifest(run.dataset), files.weights(plan.name, run.weights)]
    flow = Workflow([plan], files, mark=files.start(1))
    (block,) = flow.blocks
    assert flow.preparation(*block) == [files.plan(plan.name), *needed]
    write_plans([plan], tmp_path)
    assert flow.preparation(*block)[-1] == flow.mark
    needed[0].parent.mkdir(parents=True)
    needed[0].touch()
    os.utime(needed[0], (time.time() + 3600,) * 2)
    assert needed[0] not in flow.preparation(*block)
    write_records(plan, files.records(plan.name))
    assert Workflow([plan], files).preparation(*block) == [files.plan(plan.name)]


def test_only_the_named_settings_are_run_each_as_often_as_it_says() -> None:
    factors = {"training.batch_size": [2, 4, 8], "training.drop_last": [True, False]}
    only = [
        {"training.batch_size": 2},
        {"training.batch_size": 8, "training.drop_last": False, "replicates": 5},
    ]
    plan = tiny_plan(factors=factors, only=only, replicates=2)
    counts = Counter(tuple(run.setting.levels[name] for name in factors) for run in plan.runs)
    assert counts == {(2, True): 2, (2, False): 2, (8, False): 5}
    assert [run.block for run in plan.runs] == sorted(run.block for run in plan.runs)
    assert {run.block for run in plan.runs if run.settings.training.batch_size == 8} == {
        *range(1, 6)
    }
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize(
    ("only", "key", "value", "allowed"),
    [
        ({"training.epochs": 1}, "only", "training.epochs", "training.batch_size, replicates"),
        ({"training.batch_size": 3}, "only.training.batch_size", 3, "2, 4, 8"),
        ({"training.batch_size": 2, "replicates": 0}, "only.replicates", 0, "1 to 1000"),
        ({"training.batch_size": 2, "replicates": True}, "only.replicates", True, "1 to 1000"),
    ],
)
def test_a_setting_that_is_none_is_an_error_that_says_what_is_allowed(
    only: dict[str, Any], key: str, value: Any, allowed: str
) -> None:
    with refused(key, value) as error:
        tiny_plan(factors={"training.batch_size": [2, 4, 8]}, only=[only])
    assert error.allowed == allowed
