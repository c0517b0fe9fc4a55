"""What a study answers. Each kind of answer is one class in one file: its fields, how it is found,
and its words."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

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
    | NullControl,
    Field(discriminator="kind"),
]
"""One statement of the answer."""


def first_answer(
    study: Study, answers: Sequence[Answer], switches: Sequence[Switches]
) -> Answer | Switches:
    """Return the statement that the study's question asks for.

    A contrast asks for the ratio, effects for what each switch buys, several ways for the fastest
    of them, a null control by itself for the noise, and all others for the fastest setting.
    """
    if study.effects and any(one.effects for one in switches):
        return switches[0]
    asked = ["ways"]
    if study.contrast:
        asked = ["ratios", "ways"]
    if study.null_control and set(study.compared) <= {"device"}:
        asked = ["noise"]
    for about in asked:
        for answer in answers:
            if answer.about == about:
                return answer
    return answers[0]
