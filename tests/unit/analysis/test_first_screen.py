"""The first screen of every kind of study: its order, and the most words of each of its
elements."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from study.analysis.analysis import result_of
from study.analysis.report.content import StudyView, view
from study.artifacts.layout import Results
from study.config.effect import check_given
from study.config.settings import with_values
from study.config.study import Study
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan
from tests.conftest import HERE, ROOT
from tests.examples import EXAMPLE, STUDIES
from tests.unit.analysis.kinds import KINDS, measured

FILES = sorted([*ROOT.glob("config/studies/*.yaml"), *ROOT.glob("replications/*/studies/*.yaml")])
MOST = {
    "question": 22,
    "answer": 32,
    "job": 29,
    "claim": 12,
    "measured": 18,
    "source": 32,
    "chart": 12,
    "limit": 28,
    "change": 30,
    "next": 8,
    "text": 30,
}
"""Words of each element, by the style guide."""


def words(view: StudyView) -> Iterator[tuple[str, str]]:
    """Each element of a first screen by its name."""
    screen = view.analysis.screen
    yield "answer", view.analysis.answer.replace("**", "")
    yield "job", " ".join(screen.job)
    for row in view.analysis.claims:
        yield from (("claim", row.claim), ("measured", row.measured), ("source", row.source))
    yield "chart", screen.chart
    if screen.limit:
        yield "limit", f"What limits it: {screen.limit.phase}. {screen.limit.text}"
    for change in screen.changes:
        yield "change", f"{change.cause} {change.becomes}"
    if screen.next:
        yield from (("next", screen.next.title), ("text", screen.next.text))


def check(results: Path, study: str) -> None:
    """Hold the limits of words, and that the terminal says what the page says."""
    result = result_of(Results(results), study)
    found = list(words(view(result.plan, result.frame, result.analysis, [])))
    long = {f"{name}: {text}" for name, text in found if len(text.split()) > MOST[name]}
    assert not long
    assert sum(" core" in part for part in result.analysis.screen.job) <= 1  # each machine once
    terminal = " ".join(
        result.analysis.screen.lines(result.analysis.answer, result.analysis.claims)
    )
    for name, text in found:
        if name in ("answer", "claim", "measured", "change", "next"):
            assert text in terminal


@pytest.mark.parametrize("kind", KINDS)
def test_no_element_of_a_first_screen_is_longer_than_the_style_guide_allows(
    kind: str, tmp_path: Path
) -> None:
    check(tmp_path, measured(kind, tmp_path).name)


@pytest.mark.parametrize("study", STUDIES)
def test_nor_is_one_of_the_first_screens_of_the_example(study: str) -> None:
    check(EXAMPLE, study)


def test_where_the_largest_batch_size_is_the_fastest_the_next_step_tries_a_larger_one(
    tmp_path: Path,
) -> None:
    step = result_of(Results(tmp_path), measured("curve", tmp_path).name).analysis.screen.next
    assert step and step.command
    assert "overrides={training.batch_size: [128, 256], replicates: 6}" in step.command


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_proposed_against_a_limit_makes_a_plan_and_leaves_no_key_idle(
    kind: str, tmp_path: Path
) -> None:
    plan = measured(kind, tmp_path)
    limit = result_of(Results(tmp_path), plan.name).analysis.screen.limit
    for part in limit.parts if limit else ():
        if part.key:
            changed = Study.model_validate(
                with_values(plan.study.model_dump(), {part.key: part.level})
            )
            check_given(changed, {part.key: part.level}, (), "tried")
            assert make_plan(plan.name, changed, EngineChoice("none", "asked for"), HERE).runs


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_question_of_a_study_is_one_short_sentence(path: Path) -> None:
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert len(f"{values['title']} {values['question']}".split()) <= MOST["question"]
