"""What a study answers. Each kind of answer is one class in one file: its fields, how it is found,
and its words."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from study.analysis.answers.bottleneck import Bottleneck
from study.analysis.answers.contrast import Contrast, NoRatio, NullControl
from study.analysis.answers.fastest import CannotSay, Fastest, NothingSucceeded, OnlyLevel
from study.analysis.answers.switches import Combination, Switches
from study.analysis.answers.ways import Ways
from study.config.study import Study

Answer = Annotated[
    Ways
    | Combination
    | NothingSucceeded
    | OnlyLevel
    | CannotSay
    | Fastest
    | Contrast
    | NoRatio
    | Bottleneck
    | NullControl,
    Field(discriminator="kind"),
]
"""One statement of the answer."""


def first_answer(
    study: Study, answers: Sequence[Answer], switches: Sequence[Switches]
) -> Answer | Switches:
    """Return the statement that the study's question asks for.

    A contrast asks for the ratio, effects for what each switch buys, several ways for the fastest
    of them, a loader run alone for what limits the run, a null control by itself for the noise, and
    all others for the fastest setting.
    """
    if study.effects and switches and any(one.effects for one in switches):
        return switches[0]
    kinds: list[type] = [Ways]
    if study.contrast:
        kinds = [Contrast, NoRatio, Ways]
    if "alone" in study.factors.get("loader.kind", []):
        kinds = [Bottleneck, *kinds]
    if study.null_control and set(study.compared) <= {"device"}:
        kinds = [NullControl]
    for kind in kinds:
        for answer in answers:
            if isinstance(answer, kind):
                return answer
    return answers[0]
