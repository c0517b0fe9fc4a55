"""A command in a study's file: what its words become, and every mistake in one line."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.base.errors import StudyError
from study.config.command import words_of
from study.config.load import read_study
from study.config.selection import Selection
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan
from tests.conftest import repeats

GOOD: dict[str, Any] = yaml.safe_load("""
title: t
question: q?
command:
  line: python train.py --bs {bs} --precision={precision} --seed {seed} {shuffle} --epochs {epochs_}
  files: [conf/*.yaml]
  variables: {LEVEL: "{bs}"}
  small: {epochs_: 1}
arguments: {shuffle: true, epochs_: 3}
output: {seconds: "took ([0-9.]+) ms", unit: ms, starts: ^ready}
factors: {bs: [8, 16], precision: [fp32, bf16]}
curve: {x: bs, y: printed_seconds}
only: [{bs: 8}, {precision: bf16}]
names: {small batches: {bs: 8}}
claims:
  - {claim: twice as fast, ratio: 2, slower: {bs: 8}, faster: {bs: 16}, source: {title: A talk}}
""")


RANK = {"claim": "an order", "rank": [{"bs": 32}, {"bs": 8}], "source": {"title": "A talk"}}


def planned(values: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The plan of a study with these values, whose files are in this folder."""
    (folder / "conf").mkdir(exist_ok=True)
    (folder / "conf" / "a.yaml").write_text("x: 1")
    (folder / "train.py").write_text("import helper")
    (folder / "helper.py").write_text("x = 1")
    (folder / "study.yaml").write_text(yaml.safe_dump(values))
    monkeypatch.chdir(folder)
    study = read_study("study.yaml", [], Selection())
    return make_plan("study", study, EngineChoice("none", "asked for"), {"cpu": None})


@pytest.mark.parametrize(
    ("line", "values", "words"),
    [
        ("python a.py --n {n}", {"n": 3}, ["python", "a.py", "--n", "3"]),
        ("a {x}", {"x": True}, ["a", "--x"]),
        ("a {dry_run} b", {"dry_run": False}, ["a", "b"]),
        ("a --x={x}", {"x": True}, ["a", "--x=true"]),
        ("{tool} -k", {"tool": "gzip -1"}, ["gzip", "-1", "-k"]),
        ("a 'x | {n} * $HOME'", {"n": 0.5}, ["a", "x | 0.5 * $HOME"]),
        ("a {{n}}", {"n": 1}, ["a", "{n}"]),
        ("a x{n}y", {"n": "p q|"}, ["a", "xp q|y"]),
    ],
)
def test_a_value_takes_the_place_of_its_name(
    line: str, values: dict[str, Any], words: list[str]
) -> None:
    assert words_of(line, values) == words


def test_short_names_stand_for_arguments_everywhere_in_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(GOOD, tmp_path, monkeypatch)
    assert [*plan.study.factors] == ["arguments.bs", "arguments.precision"]
    assert plan.study.curve.x == "arguments.bs"
    assert plan.study.claims[0].slower == {"arguments.bs": 8}
    assert len(plan.runs) == 3 * 3, "the settings that `only` leaves"
    assert {run.dataset for run in plan.runs} == {""}, "a command has no data of ours"
    overrides = {
        "bs": [8, 32],
        "only": [{"bs": 32}],
        "names": {"large": {"bs": 32}},
        "claims": [RANK],
    }
    study = read_study("study.yaml", [], Selection(overrides=overrides))
    assert study.only == [{"arguments.bs": 32}]
    assert study.names == {"large": {"arguments.bs": 32}}
    assert study.claims[0].rank == [{"arguments.bs": 32}, {"arguments.bs": 8}]


def bad_studies(seed: int) -> dict[str, Any]:
    """A study with one mistake, drawn by its seed."""
    draw = random.Random(seed)
    values: dict[str, Any] = yaml.safe_load(yaml.safe_dump(GOOD))
    command, line = values["command"], values["command"]["line"]
    word = draw.choice(["x", "no_such", "Ünï", "a b", "-", "", "bs:3", "a.b", "bs!r", "bs[0]"])
    shell = draw.choice(["|", ">", "<", ";", "&", "&&", "$HOME", "`date`", "*.py", "~/x", "$(ls)"])
    odd = draw.choice([None, [], {}, [[1]], "\0", {"a": 1}])
    pattern = draw.choice(["(", "(a)(b)", "time ", "[", "(?P<x>", "a{2,1}", "*", ""])
    kinds: list[Any] = [
        lambda: command.update(line=f"{line} {shell}"),
        lambda: command.update(line=f"{line} {{{word}}}"),
        lambda: command.update(line=draw.choice([f"'{line}", f'{line} "', f"{line} \\", "", " "])),
        lambda: command.update(line=line.replace("{bs}", "{bz}")),
        lambda: command.update(line=line.replace("train.py", f"{draw.choice('abc')}.py")),
        lambda: command.update(line=line.replace("python", draw.choice(["pyhton", "./run"]))),
        lambda: command.update(line=draw.choice([None, 3, ["python", "train.py"], {"a": 1}])),
        lambda: command.update(files=[draw.choice(["no/*.x", "../*", "missing", "/etc/*", ""])]),
        lambda: command.update(data=[draw.choice(["no_such_folder", "", "\0"])]),
        lambda: command.update(folder=draw.choice(["..", "/tmp", "a/../../b", "{x}", "{"])),
        lambda: command.update(variables={draw.choice(["A B", "1A", "A=", ""]): "x"}),
        lambda: command.update(variables={"A": draw.choice(["{no}", "{", odd or "\0"])}),
        lambda: command.update(gpus=draw.choice([0, -1, 1.5, "two", None, 10**6])),
        lambda: command.update(small={draw.choice(["no", "seed", "device"]): 1}),
        lambda: command.update({draw.choice(["lines", "shell", "file", "gpu"]): "x"}),
        lambda: values["output"].update(seconds=pattern),
        lambda: values["output"].update({draw.choice(["loss", "accuracy"]): pattern}),
        lambda: values["output"].update(starts=draw.choice(["(", "[", "", "*"])),
        lambda: values["output"].update(unit=draw.choice(["m", "sec", "", None, 3])),
        lambda: values["output"].update(take=draw.choice(["first", "p50", "", None])),
        lambda: values["output"].update(skip=draw.choice([-1, 0.5, "one", 10**9])),
        lambda: values["output"].update(what=draw.choice(["", "x" * 41, None])),
        lambda: values["output"].pop("seconds"),
        lambda: values.update(output={"second": "x"}),
        lambda: values["arguments"].update({draw.choice(["no", "Bs", "a.b"]): 1}),
        lambda: values["arguments"].pop("epochs_"),
        lambda: values["arguments"].update(epochs_=odd),
        lambda: values["factors"].update({draw.choice(["bz", "output.take", "command.line"]): [1]}),
        lambda: values["factors"].update({"training.batch_size": [1, 2]}),
        lambda: values["factors"].update(bs=draw.choice([[], [1, 1], [odd, 1], 8])),
        lambda: values["factors"].update(precision=[draw.choice(["a;b", "'x"]), "\0"]),
        lambda: values["claims"][0]["slower"].update(bs=9),
        lambda: values["claims"][0].update(slower={"bz": 8}),
        lambda: values["claims"][0].update(clock=draw.choice(["steady", "training", "whole"])),
        lambda: values["only"].append({"bs": 9}),
        lambda: values["names"].update(other={"bz": 8}),
        lambda: values["curve"].update(x=draw.choice(["bz", "precision", "seed"])),
        lambda: values["curve"].update(y=draw.choice(["fit_seconds", "step_seconds", "wall"])),
        lambda: values.update(reduced={draw.choice(["bz", "training.epochs"]): 1}),
        lambda: values.update(contrast=draw.choice(["bz", "device", "seed"])),
        lambda: values.update(training={"epochs": 7}),
        lambda: values.update(loader={"workers": 2}),
        lambda: values.update(model={"name": "resnet50"}),
        lambda: values.update(dataset={"image_size": 99}),
        lambda: values.update(process="fresh"),
        lambda: values.pop("command"),
    ]
    kinds[seed % len(kinds)]()
    return values


@pytest.mark.parametrize("seed", repeats(200, 5000))
def test_a_bad_study_of_a_command_is_one_line_before_any_run(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two mistakes that one key has, each is named; nothing is started."""
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("a process was started"))
    with pytest.raises(StudyError) as error:
        planned(bad_studies(seed), tmp_path, monkeypatch)
    text = str(error.value)
    assert "\n" not in text and len(text) < 4000, text
    assert text.startswith(("study study", "study.yaml")), text
