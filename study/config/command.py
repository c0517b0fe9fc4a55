"""A command as a run: the program and its arguments, and what is read from what it prints.

Nothing here touches a file or starts a process: ``study/host/program.py`` finds what a line names.
"""

import re
import shlex
from collections.abc import Mapping
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from study.base.errors import ValueRefused, check_known
from study.base.strict import Declared

OF_THE_RUN = ("device", "seed")
"""Placeholders that every command has."""
PYTHON = ("python", "python3")
"""Programs that stand for the Python of the start."""
JSON_KEY = re.compile(r"[\w./-]+")


def _one_value(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str)):
        return value
    raise ValueRefused(value=value, allowed="a text, a number, true or false")


Argument = Annotated[bool | int | float | str, BeforeValidator(_one_value)]
"""A value for a placeholder."""
READ = ("seconds", "accuracy", "loss")
"""What can be read from the lines of a command, by the keys of :class:`Output`."""


def placeholders_in(text: str) -> list[str]:
    """Return the names in braces of a text; a doubled brace is a brace. Raise
    :class:`ValueRefused` for any other use of braces."""
    try:
        parts = [part for part in Formatter().parse(text) if part[1] is not None]
    except ValueError as error:
        raise ValueRefused(value=text, why=str(error)) from None
    for _, name, form, conversion in parts:
        if form or conversion or not str(name).isidentifier():
            allowed = "{name}, or {{ and }} for braces themselves"
            raise ValueRefused(value=f"{{{name}}}", allowed=allowed)
    return [str(part[1]) for part in parts]


def _no_zero(text: str) -> str:
    if "\0" in text:
        raise ValueRefused(value=text, why="no command can have a character NUL")
    return text


def _with_placeholders(text: str) -> str:
    placeholders_in(text)
    return _no_zero(text)


Template = Annotated[str, AfterValidator(_with_placeholders)]
"""A text with placeholders."""


def split(text: str) -> list[str]:
    """Return the words of a text as a shell has them. Raise :class:`ValueRefused` for what only a
    shell would read: no shell reads it here."""
    quote, before = "", " "
    for sign in text:
        if before == "\\" and quote != "'":
            before = ""
            continue
        if sign == quote:
            quote = ""
        elif not quote and sign in "'\"":
            quote = sign
        expands = sign in "$`" and quote != "'"
        joins = sign in "|&;<>()*?" and not quote
        if expands or joins or (sign == "~" and before.isspace() and not quote):
            why = "no shell reads it: put it into single quotes, into a script, or after sh -c"
            raise ValueRefused(value=sign, why=why)
        before = sign
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValueRefused(value=text, why=str(error).lower()) from None


def _line(text: str) -> str:
    if not split(_with_placeholders(text)):
        raise ValueRefused(value=text, why="it names no program")
    return text


def _pattern(text: str) -> str:
    """Return a regular expression with one group, or the key of a line of JSON."""
    if (groups := re.compile(_expression(text)).groups) > 1:
        why = f"it has {groups} groups"
        raise ValueRefused(value=text, why=why, allowed="one group in brackets, or a key of JSON")
    if groups == 0 and not JSON_KEY.fullmatch(text):
        why = "it has no group, so nothing says which part of a line is the number"
        raise ValueRefused(value=text, why=why, allowed="one group in brackets, or a key of JSON")
    return text


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueRefused(value=text, why=f"it is no regular expression: {error}") from None
    return text


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_pattern)]
Expression = Annotated[str, Field(min_length=1), AfterValidator(_expression)]


Named = Annotated[str, Field(min_length=1), AfterValidator(_no_zero)]
"""A path, or a pattern of paths."""


class Command(Declared):
    """Any program as a run, in place of a training of ours. Each run starts it anew, in a fresh
    copy of its files: what is not named is not there. It goes without `dataset`, `model`,
    `training`, `loader` and `process`."""

    line: Annotated[str, Field(min_length=1, max_length=100_000), AfterValidator(_line)]
    """The program and its arguments. `{name}` stands for a level of the factor `name`, or for its
    value in `arguments`; `{device}` and `{seed}` are those of the run. No shell reads the line:
    quotes hold a word together, and nothing else has a meaning. A word that is `{name}` alone is
    `--name` where the value is true, nothing where it is false, and several words where the value
    has several. `python` is the start's, or the image's."""
    files: list[Named] = []
    """Further files and folders that the command needs, as paths or patterns from the folder where
    the study is started. Those that the line names, and what a Python script among them imports
    from there, count without."""
    data: list[Named] = []
    """Large files and folders that the command reads where they lie: they are linked or mounted,
    and not copied. Their contents are a part of the run's key, too."""
    folder: Template = "."
    """Folder in which the command is started, below that of its files."""
    variables: dict[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")], Template] = {}
    """Environment variables of the command, with placeholders like `line`."""
    gpus: int = Field(1, ge=1, le=1024)
    """Number of GPUs that the command sees, with device cuda."""
    small: dict[str, Argument] = {}
    """Values of arguments with which the command ends soon, for its warm-up run. none: the warm-up
    run is a whole one."""

    def __str__(self) -> str:
        return self.line

    @property
    def placeholders(self) -> list[str]:
        """The names in braces that the run itself does not have, each once."""
        names = []
        for text in (self.line, self.folder, *self.variables.values()):
            names += placeholders_in(text)
        return [name for name in dict.fromkeys(names) if name not in OF_THE_RUN]


def line_alone(given: Any) -> Any:
    """Return the values of a command that is given as its line alone; all else as it is."""
    return {"line": given} if isinstance(given, str) else given


class Output(Declared):
    """What is read from the lines that a command prints. A number is found by a regular expression
    with one group, such as `time ([0-9.]+)ms`, or by the key of a line of JSON, such as
    `step_seconds`. Changing `unit`, `take`, `skip` or `what` measures nothing again."""

    seconds: Pattern | None = None
    """A time that the command measured itself, in `unit`."""
    unit: Literal["s", "ms", "us", "min", "per s"] = "s"
    """Unit of `seconds`. `per s`: it is a rate, and the time is that of 1000."""
    take: Literal["last", "median", "mean", "sum", "p99"] = "last"
    """Which of several numbers is the time of a run. `p99`: the one that 99% do not exceed."""
    skip: int = Field(0, ge=0, le=1_000_000)
    """Numbers that are left out first: steps of warm-up."""
    what: str = Field("the command's own time", min_length=1, max_length=40)
    """What takes `seconds`, as a sentence begins: `a step`, `an epoch`, `1000 tokens`."""
    starts: Expression | None = None
    """A regular expression of the line with which the work begins: what is before it is
    start-up."""
    accuracy: Pattern | None = None
    """The accuracy that a run reached, 0 to 1, or in percent if it is above 1; of several the
    last."""
    loss: Pattern | None = None
    """The loss that a run reached, of which less is better; of several the last."""

    def patterns(self) -> dict[str, str]:
        """Return the patterns of the numbers that are asked for, by their keys."""
        found = {key: getattr(self, key) for key in READ}
        return {key: pattern for key, pattern in found.items() if pattern}


def check_arguments(command: Command | None, arguments: Mapping[str, Argument]) -> None:
    """Raise :class:`ValueRefused` for a placeholder without a value, and for a value without a
    placeholder."""
    wanted = command.placeholders if command else []
    for name in wanted:
        if name not in arguments:
            allowed = [*arguments] or "a factor, or a key of arguments"
            raise ValueRefused(
                key="command.line", value=f"{{{name}}}", why="it has no value", allowed=allowed
            )
    why = "the command has no such placeholder" if command else "there is no command"
    for key, names in (
        ("arguments", arguments),
        ("command.small", command.small if command else {}),
    ):
        for name in names:
            check_known(key, name, wanted, why)


def text_of(value: Argument) -> str:
    """Return a value as it stands in a word of a command."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def words_of(line: str, values: Mapping[str, Argument]) -> list[str]:
    """Return the words of a command with the values of its placeholders. Raise
    :class:`ValueRefused` if a value is no text that a word can have."""
    texts = {name: _no_zero(text_of(value)) for name, value in values.items()}
    words = []
    for word in split(line):
        alone = re.fullmatch(r"\{(\w+)\}", word)
        value = values[alone[1]] if alone else None
        if alone is None:
            words.append(word.format_map(texts))
        elif isinstance(value, bool):
            words += [f"--{alone[1].replace('_', '-')}"] * value
        else:
            words += _words_of_a_value(alone[1], texts[alone[1]])
    if not words or not words[0]:
        raise ValueRefused(key="command.line", value=line, why="it names no program")
    return words


def _words_of_a_value(name: str, text: str) -> list[str]:
    try:
        return split(text)
    except ValueRefused as error:
        context = f"in {text}" if error.value != text else ""
        raise ValueRefused(
            key=f"arguments.{name}", value=error.value, context=context, why=error.why
        ) from None
