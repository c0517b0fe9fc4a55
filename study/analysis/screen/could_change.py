"""What could change the answer: each caveat that can be counted in, with what the answer
becomes."""

from collections.abc import Sequence

from study.analysis.answers import Answer
from study.analysis.answers.context import Context
from study.analysis.answers.switches import Switches
from study.analysis.caveats import Caveat
from study.analysis.caveats.runs import Unsuccessful
from study.base.errors import quantity
from study.base.strict import Strict

MOST = 2
"""Changes that are open; the others are counted."""


class Change(Strict):
    """One caveat with which the answer changes."""

    cause: str
    becomes: str


def changes_of(
    context: Context, first: Answer | Switches, caveats: Sequence[Caveat]
) -> list[Change]:
    """Return the caveats that change a word or the first digit of the answer, those that change a
    word first."""
    found = []
    for caveat in caveats:
        means = {group.setting: own for group in context.groups if (own := caveat.applied(group))}
        told = first.becomes(context, means) if means else None
        if told:
            found.append(
                (told[:2], Change(cause=f"{caveat.text()}.", becomes=f"{caveat.IF}, {told[2]}"))
            )
    found.sort(key=lambda one: one[0], reverse=True)
    return [*_missing(context, first, caveats), *(change for _, change in found)][:MOST]


def _missing(context: Context, first: Answer | Switches, caveats: Sequence[Caveat]) -> list[Change]:
    """Return the settings without a run that counts, which could have been the fastest."""
    failed = sum(len(caveat.runs) for caveat in caveats if isinstance(caveat, Unsuccessful))
    group = context.group(first.lacks.group) if first.lacks and first.lacks.group else None
    missing = [level.label for level in group.levels if not level.time] if group else []
    if not missing or not failed:
        return []
    cause = f"{quantity(failed, 'run')} failed, and none of {context.settings(missing)} counts."
    return [
        Change(
            cause=cause,
            becomes="It could be the fastest." if len(missing) == 1 else "Each could lead.",
        )
    ]
