"""The check that what is asked for changes what a run does: of the keys that have no effect where
they stand.

A key that a study's file or a start gives has an effect in some run, and two levels of a factor
make two different runs. Where a key has none is said at its field. ``make schema`` prints it into
``config/README.md``.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from study.base.errors import StudyError
from study.config.keys import Idle, all_hold, values_of
from study.config.rules import broken
from study.config.settings import DEFAULTS, KEYS, Keys, Settings, get, known, with_values
from study.config.study import StudyFile


def check_given(
    study: StudyFile, asked: Mapping[str, Any], settled: Collection[str], source: str
) -> None:
    """Raise :class:`StudyError` for a key of ``asked`` that has no effect in any run of the study.

    What a start sets, the keys ``settled``, may leave a key of the file without effect.
    """
    for key, mark in KEYS.items():
        value, default = asked.get(key), get(DEFAULTS, key)
        if value in (None, default, [default]):
            continue
        for idle in mark.idle:
            if not idle.when.keys() & {*settled} and _everywhere(idle, study):
                raise _no_effect(key, idle, value, study, source)


def _everywhere(idle: Idle, study: StudyFile) -> bool:
    """Return whether a key is without effect at every level of the factors of a study."""
    return all(all(map(values.hold, study.levels_of(key))) for key, values in idle.when.items())


def _no_effect(key: str, idle: Idle, value: Any, settings: BaseModel, source: str) -> StudyError:
    """Return the error: the key with its value, the other keys with theirs, and what makes the key
    effective."""
    why = f"it has no effect there, and has one with {idle.cure}"
    context = values_of(idle.when, settings)
    return StudyError(source=source, key=key, value=value, context=context, why=why)


def check_factors(factors: Collection[str], every: Iterable[Settings], source: str) -> None:
    """Raise :class:`StudyError` if two settings of a study differ in nothing but factors without
    effect."""
    seen: dict[tuple[Any, ...], Settings] = {}
    if not any(known(key).idle for key in factors):
        return
    for settings in every:
        idle = {key: found for key in factors if (found := _idle(key, settings))}
        other = seen.setdefault(
            tuple(None if key in idle else (get(settings, key),) for key in factors), settings
        )
        for key in idle if other is not settings else ():
            if get(other, key) != get(settings, key):
                values = [get(other, key), get(settings, key)]
                raise _no_effect(key, idle[key], values, settings, source)


def _idle(key: str, settings: BaseModel) -> Idle | None:
    """Return why a key changes nothing with these settings, or None if it has an effect."""
    return next((idle for idle in known(key).idle if all_hold(idle.when, settings)), None)


def allows(runs: Iterable[Settings], key: str, level: Any, asked: Collection[str]) -> bool:
    """Return whether runs may have another ``level`` of a key, which has an effect there and leaves
    no key of ``asked`` without one."""
    for other in asked:
        if any(key in idle.when and idle.when[key].hold(level) for idle in known(other).idle):
            return False
    values = [with_values(run.model_dump(exclude={"control"}), {key: level}) for run in runs]
    changed = [Keys.model_validate(one) for one in values]
    idle = all(_idle(key, one) for one in changed)
    return not idle and not any(any(broken(one)) for one in changed)
