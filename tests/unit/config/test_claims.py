"""What a study's file may claim: each bad claim is one line before any run."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.base.errors import StudyError
from study.config.load import read_selection, read_study
from study.config.study import Study
from tests.conftest import study_values, tiny_plan

SIZE = "training.batch_size"
RATIO: dict[str, Any] = {"ratio": 2, "slower": {"device": "cpu"}, "faster": {"device": "cuda"}}
SOURCE = {"title": "A report"}


def study_of(folder: Path, *claims: dict[str, Any], **overrides: Any) -> Study:
    """The study whose file has these claims, read as a start reads it."""
    given = [{"claim": "A claim", "source": SOURCE} | claim for claim in claims]
    values = study_values(factors={"device": ["cpu", "cuda"], SIZE: [4, 8]}, claims=given)
    (folder / "mine.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return read_study("mine", [folder], read_selection({"studies": ["mine"], **overrides}))


@pytest.mark.parametrize(
    ("claim", "line"),
    [
        ({}, "0: it claims nothing; allowed: ratio, best, rank, shares, seconds, accuracy, images_per_second"),
        ({**RATIO, "seconds": 3}, "0.seconds: 3.0 is not allowed with ratio: a claim is of one kind"),
        ({"best": {"training.batchsize": 4}}, "0.best: 'training.batchsize' is not allowed: no such key; allowed: "),
        ({"best": {SIZE: 16}}, f"0.best.{SIZE}: 16 is not allowed: no level of this study; allowed: 4, 8"),
        ({"seconds": 3, "at": {"training.loop": "fastai"}},
         "0.at.training.loop: 'fastai' is not allowed: no level of this study; allowed: torch"),
        ({"shares": [{"setting": {SIZE: 5}, "percent": 50}], "of": {SIZE: 4}},
         f"0.shares.0.setting.{SIZE}: 5 is not allowed: no level of this study; allowed: 4, 8"),
        ({**RATIO, "ratio": -2}, "0.ratio: -2 is not allowed: input should be greater than 0"),
        ({**RATIO, "ratio": "twice"}, "0.ratio: 'twice' is not allowed: input should be a valid number"),
        ({"accuracy": 64.5}, "0.accuracy: 64.5 is not allowed: input should be less than or equal to 1"),
        ({"ratio": 2, "faster": {"device": "cuda"}}, "0.slower: missing; ratio needs it"),
        ({"seconds": 3, "of": {SIZE: 4}},
         "0.of: {'training.batch_size': 4} is not allowed with seconds: it belongs to shares"),
        ({"ratio": 2, "slower": {"device": "cpu"}, "faster": {SIZE: 4}},
         f"0.faster: {{'{SIZE}': 4}} is not allowed; allowed: other levels of device"),
        ({"ratio": 2, "slower": {"device": "cpu"}, "faster": {"device": "cpu"}},
         "0.faster: {'device': 'cpu'} is not allowed; allowed: other levels of device"),
        ({"seconds": 3, "source": {"kind": "blog"}}, "0.source.title: missing; it must be given"),
        ({"seconds": 3, "source": SOURCE | {"date": "2025-02-30"}},
         "0.source.date: '2025-02-30' is not allowed; allowed: a day, month or year: 2025-04-16, 2025-04, 2025"),
        ({"seconds": 3, "source": SOURCE | {"date": "soon"}}, "0.source.date: 'soon' is not allowed; allowed: a day"),
        ({"seconds": 3, "source": SOURCE | {"address": "javascript:alert(1)"}}, "0.source.address: "),
        ({"seconds": 3, "source": {"title": "word " * 28}}, "0.source: 28 words: a line holds 27 words"),
        ({"seconds": 3, "claim": "so " * 13}, "0.claim: 'so so so so so so so so so so so so so ' is not allowed"),
        ({"seconds": 3, "source": SOURCE | {"differs": "Photographs."}},
         "0.source.differs: 'Photographs.' is not allowed: it stands beside `source` now, as a list of a few words"),
        ({**RATIO, "to": 1.5}, "0.to: 1.5 is not allowed; allowed: more than `ratio`, about"),
        ({"seconds": 3, "sense": "up to"}, "0.sense: 'up to' is not allowed with seconds: it is of ratio"),
        ({"rank": [{SIZE: 4}, {SIZE: 8}], "within": 0.1}, "0.within: 0.1 is not allowed: an order has no margin"),
        ({"rank": [{SIZE: 4}]}, f"0.rank: [{{'{SIZE}': 4}}] is not allowed; allowed: two settings and more"),
        ({"rank": [{SIZE: 4}, {SIZE: 5}]}, f"0.rank.1.{SIZE}: 5 is not allowed: no level of this study"),
        ({"seconds": 3, "speed": 4}, "0.speed: 4 is not allowed: unknown key; allowed: "),
    ],
)  # fmt: skip
def test_a_bad_claim_is_one_line_with_its_key_its_value_and_what_is_allowed(
    claim: dict[str, Any], line: str, tmp_path: Path
) -> None:
    with pytest.raises(StudyError) as refused:
        study_of(tmp_path, claim)
    assert str(refused.value).startswith(f"study mine: claims.{line}")
    assert "\n" not in str(refused.value)


def test_a_claim_about_a_level_that_a_start_leaves_out_stays(tmp_path: Path) -> None:
    study = study_of(tmp_path, RATIO, devices=["cpu"])
    assert (study.factors["device"], study.claims[0].faster) == (["cpu"], {"device": "cuda"})


def test_a_date_may_be_a_year_and_a_number(tmp_path: Path) -> None:
    study = study_of(tmp_path, {"seconds": 3, "source": SOURCE | {"date": 2025}})
    assert study.claims[0].source.date == "2025"


def test_a_claim_changes_no_key_of_a_run_and_is_in_the_plan() -> None:
    claims = [{"claim": "A claim", "seconds": 3, "source": SOURCE}]
    without, plan = tiny_plan(), tiny_plan(claims=claims)
    assert [run.key for run in plan.runs] == [run.key for run in without.runs]
    assert type(plan).of_text(plan.model_dump_json()) == plan


def test_a_source_stands_once_and_the_claims_inherit_it(tmp_path: Path) -> None:
    claims = [{"claim": "A", "seconds": 3}, {"claim": "B", "seconds": 4, "source": {"title": "C"}}]
    values = study_values(claims=claims, source=SOURCE)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    study = read_study("mine", [tmp_path], read_selection({"studies": ["mine"]}))
    assert [claim.source.title for claim in study.claims] == ["A report", "C"]


def test_a_plan_of_an_older_version_is_read_with_what_its_source_said_to_differ() -> None:
    plan = tiny_plan(claims=[{"claim": "A claim", "seconds": 3, "source": SOURCE}])
    values = json.loads(plan.model_dump_json())
    values["study"]["claims"][0]["source"]["differs"] = "Photographs there."
    assert type(plan).of_text(json.dumps(values)).study.claims[0].differs == ["Photographs there"]
