"""A setting keeps its levels by key from the plan to `fit.json` and the page, whatever letters they
have."""

from pathlib import Path

import pytest

from study.analysis.analysis import Analysis, result_of
from study.analysis.answers.fastest import Fastest
from study.analysis.answers.switches import Combination
from study.analysis.answers.ways import Ways
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.base.files import write_new, write_whole
from study.cli import main
from tests.conftest import study_values, tiny_plan
from tests.unit.artifacts.test_records import make_record
from tests.unit.artifacts.test_setting import DROP, ODD, PATH, SIZE, odd_plan
from tests.unit.config.test_config import plan_of


def reported(plan: Plan, results: Path) -> tuple[Analysis, str]:
    """The analysis as it is written, and the page, of records in which each setting takes its own
    time."""
    files, shorts = Results(results), sorted({run.setting.short for run in plan.runs})
    write_plans([plan], results)
    for number, run in enumerate(plan.runs):
        record = make_record(
            plan, number, fit_seconds=1.0 + shorts.index(run.setting.short) + 0.01 * run.block
        )
        write_new(files.record(plan.name, run.file), record.model_dump_json())
    result = result_of(files, plan.name)
    write_whole(files.fit(plan.name), result.analysis.model_dump_json())
    assert main(["report", "--results", str(results)]) == 0
    return Analysis.of_file(files.fit(plan.name)), files.report.read_text(encoding="utf-8")


def test_levels_with_a_comma_or_a_plus_are_found_by_key_in_every_group_and_way(
    tmp_path: Path,
) -> None:
    analysis, page = reported(odd_plan(tmp_path), tmp_path / "results")
    assert [group.setting.levels for group in analysis.groups] == [{PATH: name} for name in ODD]
    for group in analysis.groups:
        assert [(level.setting.levels, level.runs) for level in group.levels] == [
            ({SIZE: 2}, 3),
            ({SIZE: 4}, 3),
        ]
    (ways,) = [answer for answer in analysis.answers if isinstance(answer, Ways)]
    assert sorted(str(way.group.levels[PATH]) for way in ways.ways) == sorted(ODD)
    answers = [answer for answer in analysis.answers if isinstance(answer, Fastest)]
    assert [answer.group for answer in answers] == [group.setting for group in analysis.groups]
    for name in ODD:
        assert name in page


def test_switches_with_a_comma_or_a_plus_are_found_by_key_in_every_effect_and_combination(
    tmp_path: Path,
) -> None:
    analysis, page = reported(odd_plan(tmp_path, effects=True), tmp_path / "results")
    (group,), (switches,) = analysis.groups, analysis.switches
    wanted = {(name, drop) for name in ODD for drop in (False, True)}
    assert {
        (level.setting.levels[PATH], level.setting.levels[DROP]) for level in group.levels
    } == wanted
    assert {(effect.factor, effect.level) for effect in switches.effects} == {
        *((PATH, name) for name in ODD[1:]),
        (DROP, "drop last"),
    }
    (combination,) = [answer for answer in analysis.answers if isinstance(answer, Combination)]
    assert combination.base.levels == {PATH: ODD[0], DROP: False}
    assert combination.best == next(
        level.setting for level in group.levels if level.label == group.best
    )
    assert "two + three" in page


NAMES = {"small steps": {SIZE: 4, DROP: False}, "whole steps": {SIZE: 8, DROP: True}}


def named_plan(**names: object) -> Plan:
    """A plan of four settings, of which two may have names."""
    return tiny_plan(factors={SIZE: [4, 8], DROP: [False, True]}, curve=None, replicates=3, **names)


def test_page_terminal_and_fit_say_a_name_in_place_of_its_levels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    analysis, page = reported(named_plan(names=NAMES), tmp_path)
    labels = ["small steps", "4, last batch dropped", "8, last batch kept", "whole steps"]
    assert [level.label for level in analysis.groups[0].levels] == labels
    capsys.readouterr()
    assert main(["answer", "--results", str(tmp_path)]) == 0
    for text in (page, capsys.readouterr().out, analysis.answer):
        assert "mall steps" in text


def test_a_start_that_leaves_a_level_out_leaves_out_the_names_of_it(tmp_path: Path) -> None:
    changed = study_values(factors={SIZE: [4, 8], DROP: [False, True]}, curve=None, names=NAMES)
    plan = plan_of(tmp_path, changed, overrides={SIZE: [8]})
    assert list(plan.study.names) == ["whole steps"]
