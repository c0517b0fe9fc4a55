"""A setting: its levels by key, its label and its short name; nothing splits a name to find it
again."""

from pathlib import Path

import pytest

from study.artifacts.plan import Plan
from study.artifacts.setting import EVERYWHERE, Levels, setting_of, shareable
from study.config.study import Study
from tests.conftest import study_values, tiny_plan, write_photos

PATH, SIZE, DROP = "dataset.path", "training.batch_size", "training.drop_last"
RATE = "training.learning_rate"
ODD = ("one, two", "one", "two + three", "three")
"""Names of folders; two have in themselves what parts the levels of a label."""


def odd_plan(folder: Path, effects: bool = False) -> Plan:
    """A plan of four folders, each with two levels of another factor."""
    paths = [str(write_photos(folder / name, {"a": 5, "b": 5})) for name in ODD]
    other: dict[str, list[object]] = {DROP: [False, True]} if effects else {SIZE: [2, 4]}
    return tiny_plan(
        dataset={"source": "folder", "path": paths[0], "image_size": 32},
        factors={PATH: paths} | other,
        replicates=3,
        **({"effects": True, "curve": None} if effects else {}),
    )


def test_each_run_has_the_levels_of_its_factors_and_its_block_as_fields() -> None:
    plan = tiny_plan(factors={"device": ["cpu"], SIZE: [4, 8], DROP: [True, False]}, replicates=2)
    assert {(*run.setting.levels.values(), run.block) for run in plan.runs} == {
        ("cpu", size, drop, block) for size in (4, 8) for drop in (True, False) for block in (1, 2)
    }
    assert all(run.name == f"{run.setting.short}-r{run.block}" for run in plan.runs)
    (setting,) = {
        run.setting
        for run in plan.runs
        if run.setting.levels == {"device": "cpu", SIZE: 4, DROP: False}
    }
    assert (setting.label, setting.short) == ("CPU, 4, last batch kept", "bs4-droplastfalse-cpu")


def test_the_setting_of_a_record_has_no_folder_in_its_levels_nor_in_its_label(
    tmp_path: Path,
) -> None:
    plan = odd_plan(tmp_path / "secret")
    for run in plan.runs:
        own = shareable(plan.study, run.setting)
        assert (own.short, own.label) == (run.setting.short, run.setting.label)
        assert own.levels[PATH] in ODD
        assert "secret" not in own.model_dump_json()


@pytest.mark.parametrize(
    ("changes", "levels", "label"),
    [
        ({}, {}, "the run"),
        ({}, {SIZE: 4}, "4"),
        ({"factors": {RATE: [0.001, 0.0010000001]}}, {RATE: 0.001}, "0.001"),
        ({"factors": {RATE: [0.001, 0.0010000001]}}, {RATE: 0.0010000001}, "0.0010000001"),
        ({}, {"device": "a, b"}, "a, b"),
        ({}, {"device": "a, b", SIZE: 4}, '"a, b", 4'),
        ({}, {"device": "a", "training.loop": "b, c"}, 'a, "b, c"'),
        ({"effects": True}, {"device": "cpu", SIZE: 4, DROP: False}, "CPU, first levels"),
        ({"effects": True}, {"device": "cpu", SIZE: 8, DROP: True}, "CPU, 8 + last batch dropped"),
        ({"effects": True}, {SIZE: 8, DROP: False}, "8"),
        ({"effects": True}, {"device": "cpu"}, "CPU"),
    ],
)
def test_a_label_has_the_levels_in_words(
    changes: dict[str, object], levels: Levels, label: str
) -> None:
    plain = {"factors": {"device": ["cpu"], SIZE: [4, 8], DROP: [False, True]}, "curve": None}
    study = Study.model_validate(study_values(**(plain | changes)))
    assert setting_of(study, levels).label == label


LOOP, FORMAT, GRAPH = "training.loop", "training.memory_format", "training.cuda_graph"
FIRST, LAST = {FORMAT: "contiguous"}, {FORMAT: "channels_last"}
FASTAI, TORCH = {LOOP: "fastai"}, {LOOP: "torch"}
NAMES = {
    "stock fastai": {LOOP: "fastai"},
    "all switches on": {FORMAT: "channels_last", GRAPH: True},
    "recorded": {GRAPH: True},
}


@pytest.mark.parametrize(
    ("levels", "label"),
    [
        (FASTAI | FIRST | {GRAPH: False}, "stock fastai, channels first, no CUDA graphs"),
        (TORCH | LAST | {GRAPH: True, SIZE: 8}, "PyTorch loop, all switches on, 8"),
        (TORCH | FIRST | {GRAPH: True, SIZE: 8}, "PyTorch loop, channels first, recorded, 8"),
        ({GRAPH: True}, "recorded"),
        ({SIZE: 8}, "8"),
    ],
)
def test_a_setting_has_the_name_of_most_levels_in_place_of_these(
    levels: Levels, label: str
) -> None:
    factors: dict[str, object] = {LOOP: ["fastai", "torch"]}
    factors |= {FORMAT: ["contiguous", "channels_last"], GRAPH: [False, True], SIZE: [4, 8]}
    setting = setting_of(Study.model_validate(study_values(factors=factors, names=NAMES)), levels)
    assert setting.label == label
    assert setting.part([*levels]) == setting.model_copy(
        update={"short": setting.part([*levels]).short}
    )


def test_a_part_of_a_setting_is_one_and_a_level_within_its_group_is_the_whole() -> None:
    study = tiny_plan().study
    whole = setting_of(study, {"device": "cpu", SIZE: 4})
    group, level = whole.part(["device"]), whole.part([SIZE])
    assert (group.label, level.label, whole.part([]).levels) == ("CPU", "4", EVERYWHERE.levels)
    assert level.within(group) == whole
