"""Read YAML and the command line into checked models, or write a first file. Bad input becomes one
line.

The line names the key, the value and the allowed values.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from study.base import strict_yaml
from study.base.errors import StudyError, check_known
from study.base.files import digest, write_whole
from study.base.strict import explain
from study.config.command import PYTHON, Command, line_alone, split
from study.config.effect import check_given
from study.config.selection import Selection
from study.config.settings import ARGUMENTS, KEYS, setting_keys, with_values
from study.config.study import Study, StudyFile

ENDING = ".yaml"
FIRST = Path(__file__).parent / "first_study.yaml"
"""What `study new` writes."""
HOLD_LEVELS = {"x", "slower", "faster", "best", "rank", "of", "at", "setting"}
"""Fields of a curve and of a claim that hold keys of factors."""
FIRST_COMMAND = Path(__file__).parent / "command_study.yaml"
"""What `study new --command` writes."""
RESERVED = ("data", "images", "logs", "weights")
SECTIONS = ("dataset", "model", "training", "loader", "arguments", "output", "limits", "evidence")


def read_selection(values: dict[str, Any]) -> Selection:
    """Return the selection in Snakemake's ``config``: scalars become lists, and overrides are
    parsed as YAML."""
    values = dict(values)
    for key in ("studies", "devices"):
        if isinstance(values.get(key), str) and values[key] != "auto":
            values[key] = [values[key]]
    if values.get("container", "") is None:
        values["container"] = "none"  # a reader of YAML may turn a bare `none` into None
    if isinstance(values.get("overrides"), dict):
        values["overrides"] = {
            key: strict_yaml.parse_leaves(value, f"overrides: {key}")
            for key, value in values["overrides"].items()
        }
    for key in ("overrides", "images"):
        if values.get(key, {}) is None:
            values[key] = {}
    for key in ("images", "warm_up_run", "quiet_wait_seconds", "time_budget_minutes"):
        if key in values:
            values[key] = strict_yaml.parse_leaves(values[key], key)
    return Selection.of_values(values, "config")


def study_name(called: str) -> str:
    """Return the name of a study that is called by its name, or by the path of its file."""
    return Path(called).stem if called.endswith(ENDING) else called


def study_file(called: str, folders: Sequence[Path]) -> Path:
    """Return the file of a study: of that name in the first of the ``folders`` that has it, or of
    that path.

    Raise :class:`StudyError` if it is not there, or if a study cannot have that name.
    """
    # Backwards, so that the first folder's file is the one that stays.
    files = {
        path.stem: path
        for path in chain.from_iterable(folder.glob(f"*{ENDING}") for folder in reversed(folders))
    }
    name = study_name(called)
    if called.endswith(ENDING):
        files = {name: Path(called)}
        if not Path(called).is_file():
            raise StudyError(
                key="studies", value=called, why="no such file", allowed="names, or paths of files"
            )
    elif name not in files:
        known = ", ".join(sorted(files)) or "none"
        raise StudyError(
            key="studies",
            value=name,
            why="unknown study",
            allowed=f"{known}, or the path of a file (*{ENDING})",
        )
    _check_name(name, "studies")
    return files[name]


def command_study(line: str, given: Sequence[str]) -> dict[str, str]:
    """Return what the file of a study of a command says, by its marks in :data:`FIRST_COMMAND`;
    ``given`` are the factors, as ``NAME=LEVEL,LEVEL``.

    A placeholder that has none gets an empty list, to be filled. Raise :class:`StudyError` for a
    line or a factor that cannot be.
    """
    try:
        command = Command.model_validate({"line": line})
    except ValidationError as error:
        raise explain(error, Command, "command") from None
    factors: dict[str, Any] = {name: [] for name in command.placeholders}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals:
            raise StudyError(key="--factor", value=item, allowed="NAME=LEVEL,LEVEL")
        check_known("--factor", name, [*factors, "device"], "the command has no such placeholder")
        levels = text if text.startswith("[") else f"[{text}]"
        factors[name] = strict_yaml.parse_leaves(levels, f"--factor {name}")
    told = "".join(f"\n  {name}: {json.dumps(levels)}" for name, levels in factors.items())
    title = json.dumps(" ".join(command.line.split()[:2]))
    return {"LINE": json.dumps(line), "TITLE": title, "FACTORS": told or " {}"}


def write_first_study(file: Path, of_a_command: Mapping[str, str] | None = None) -> None:
    """Write the file of a first study, in which each line is explained, or that of a command. Raise
    :class:`StudyError` if it is there."""
    if file.suffix != ENDING:
        raise StudyError(key="file", value=str(file), allowed=f"a path that ends in {ENDING}")
    _check_name(file.stem, "file")
    if file.exists():
        raise StudyError(f"{file}: it is there already and is kept: name another file")
    text = (FIRST_COMMAND if of_a_command else FIRST).read_text(encoding="utf-8")
    marks = {"FILE": str(file), **(of_a_command or {})}
    write_whole(file, re.sub("|".join(marks), lambda mark: marks[mark[0]], text))


def file_of_command(line: str, given: Sequence[str]) -> Path:
    """Return the file of a study of a command, in the working folder: the same for the same line
    and factors. It is written if it is not there."""
    told = command_study(line, given)
    words = [word for word in split(line) if not word.startswith(("-", "{"))]
    if len(words) > 1 and words[0] in PYTHON:
        del words[0]
    stem = Path(words[0]).stem if words else ""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", stem).strip("-") or "command"
    file = Path(f"{name}-{digest(told)[:4]}{ENDING}")
    if not file.exists():
        write_first_study(file, told)
    return file


def _check_name(name: str, key: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or name in RESERVED:
        allowed = f"letters, digits, - and _, but not {', '.join(RESERVED)}"
        raise StudyError(key=key, value=name, context="as a study's name", allowed=allowed)


def read_study(
    called: str,
    folders: Sequence[Path],
    selection: Selection,
    rung: Mapping[str, Any] | None = None,
) -> Study:
    """Return a study, with the devices and overrides of ``selection`` applied: see
    :func:`study_file`.

    ``rung`` are the values of its ladder that were chosen. In the reduced size there is no ladder.
    """
    values = strict_yaml.read_mapping(study_file(called, folders))
    whole = whole_keys(values)
    values = with_whole_keys(values, whole)
    written, source = values, f"study {study_name(called)}"
    given = with_whole_keys(_plain(selection), whole)
    asked = overrides = {whole.get(key, key): value for key, value in given.items()}
    if "command" in {key.partition(".")[0] for key in overrides}:
        why = "a command stands in its study's file, and no start changes it"
        raise StudyError(key="overrides", value="command", why=why, allowed="arguments")
    full = {}
    taken = {}
    reduced = values.get("reduced") or {}
    if selection.size == "reduced" and isinstance(reduced, dict):
        full = {key: _at(values, key) for key in reduced if key not in overrides}
        overrides = {
            key: value for key, value in reduced.items() if key not in overrides
        } | overrides
    if full:
        values = {key: value for key, value in values.items() if key != "ladder"}
    elif rung:
        taken = {key: value for key, value in rung.items() if key not in overrides}
        overrides = taken | overrides
    values = _without_lost_levels(values, _override(values, overrides))
    declared = StudyFile.of_values(values, source)
    _check_claims(declared, written, source)
    check_given(declared, asked, (), source)
    check_given(
        declared,
        {key: _at(written, key) for key in KEYS if key not in overrides},
        overrides,
        source,
    )
    return Study.model_validate(declared.model_dump() | {"full": full, "rung": taken})


def whole_keys(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the key of each placeholder of a study's command, by its name."""
    try:
        line = Command.model_validate(line_alone(values.get("command")))
    except ValidationError:  # no command, or one that the study's model refuses
        return {}
    return {name: ARGUMENTS + name for name in line.placeholders if name not in setting_keys()}


def with_whole_keys(values: dict[str, Any], whole: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a study's file, or of a start, with the key of each placeholder where
    its name alone stands."""

    def renamed(levels: Any) -> Any:
        if isinstance(levels, dict):
            return {whole.get(key, key): level for key, level in levels.items()}
        if isinstance(levels, list):
            return [renamed(one) if isinstance(one, dict) else one for one in levels]
        return whole.get(levels, levels) if isinstance(levels, str) else levels

    def inside(value: Any) -> Any:
        if isinstance(value, list):
            return [inside(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            key: renamed(one) if key in HOLD_LEVELS else inside(one) for key, one in value.items()
        }

    changed = dict(values)
    for key in changed.keys() & {"factors", "reduced", "only", "contrast"}:
        changed[key] = renamed(values[key])
    for key in changed.keys() & {"curve", "claims"}:
        changed[key] = inside(values[key])
    if isinstance(names := values.get("names"), dict):
        changed["names"] = {name: renamed(levels) for name, levels in names.items()}
    return changed


def _check_claims(declared: StudyFile, written: Any, source: str) -> None:
    """Raise :class:`StudyError` if a claim names no key, or a level that is neither the study's now
    nor one that its file has as ``written``: a start may leave levels out, and the claims about
    them stay."""
    for place, claim in enumerate(declared.claims):
        for where, key, level in claim.levels():
            name = f"claims.{place}.{where}"
            check_known(name, key, declared.factor_keys, "no such key", source)
            levels = [*declared.levels_of(key)]
            before = _at(written, key)
            if before is not None:
                levels += before if isinstance(before, list) else [before]
            allowed = list(dict.fromkeys(levels))
            check_known(f"{name}.{key}", level, allowed, "no level of this study", source)


def _without_lost_levels(values: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """Return ``changed`` without the names and the settings of levels that ``values`` has and an
    override took away.

    If no setting is left, all stay, and the model says which level is missing.
    """
    names = changed.get("names")
    only = changed.get("only")
    factors = values.get("factors")
    left = changed["factors"]
    if not isinstance(factors, dict) or not isinstance(left, dict):
        return changed  # the model reports the error

    def lost(levels: Any) -> bool:
        pairs = levels.items() if isinstance(levels, dict) else ()
        return any(
            isinstance(factors.get(key), list)
            and level in factors[key]
            and level not in (left.get(key) or [])
            for key, level in pairs
        )

    kept = dict(changed)
    if isinstance(names, dict):
        kept["names"] = {name: levels for name, levels in names.items() if not lost(levels)}
    if isinstance(only, list):
        kept["only"] = [levels for levels in only if not lost(levels)] or only
    return kept


def _at(values: dict[str, Any], key: str) -> Any:
    """Return the value at a dotted key of a study's file: a factor's levels, a value, or None if it
    is not set."""
    factors = values.get("factors")
    if isinstance(factors, dict) and key in factors:
        return factors[key]
    inner: Any = values
    for part in key.split("."):
        inner = inner.get(part) if isinstance(inner, dict) else None
    return inner


def _plain(selection: Selection) -> dict[str, Any]:
    """Return the overrides and devices of ``selection`` as dotted keys with their values."""
    overrides = {}
    # {"training": {"epochs": 2}} changes one key, not the section
    for key, value in selection.overrides.items():
        if key.startswith("factors."):
            overrides[key.removeprefix("factors.")] = value if isinstance(value, list) else [value]
        elif key in SECTIONS and isinstance(value, dict):
            overrides |= {f"{key}.{leaf}": item for leaf, item in value.items()}
        else:
            overrides[key] = value
    if selection.devices != "auto":
        overrides["device"] = list(selection.devices)
    return overrides


def _override(values: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Return ``values`` with ``overrides`` applied.

    An override of a factor's key replaces its levels. A list for another key of a run makes that
    key a factor.
    """
    given = values.get("factors") or {}
    if not isinstance(given, dict) or not isinstance(overrides.get("factors", {}), dict):
        return values | {"factors": overrides.get("factors", given)}  # the model reports the error
    factors = dict(given)
    plain = {}
    for key, value in overrides.items():
        is_key = key in setting_keys() or key.startswith(ARGUMENTS)
        if key in factors or (is_key and isinstance(value, list)):
            factors[key] = value if isinstance(value, list) else [value]
        else:
            plain[key] = value
    values = with_values(values, plain)
    # An override may have set `factors` as a whole: its keys take precedence, and other factors are
    # kept.
    return values | {"factors": factors | (plain.get("factors") or {})}
