"""A study, its runs in their order, and the command of the start that planned them: the file
`plan.json`."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from study.artifacts.layout import Results
from study.artifacts.prepared import ImageRequest
from study.artifacts.run import Run
from study.artifacts.setting import name_of
from study.base.errors import StudyError, ValueRefused
from study.base.files import INSTALLED, ROOT, write_if_changed
from study.base.privacy import plain
from study.base.strict import Strict, Versioned, without_gone
from study.config.settings import get, known
from study.config.study import Study

PLAIN = re.compile(r"[A-Za-z_][\w./-]*(:[\w./-]+)*")
"""A word that YAML reads as text without quotes."""
SHORT = {
    "-d": "--directory",
    "-s": "--snakefile",
    "-e": "--executor",
    "-j": "--jobs",
    "-c": "--cores",
}
REPEATED = {
    *SHORT.values(),
    "--profile",
    "--workflow-profile",
    "--default-resources",
    "--set-resources",
}
"""Snakemake's options that a printed command repeats, each with one value."""
CORES = {"--cores", "--jobs", "--profile", "--executor"}
"""Options that say on how many cores, or jobs, a start is made."""
NO_TEXT = {"null", "true", "false", "yes", "no", "on", "off"}


def _program(told: object) -> object:
    """Return what was typed: plans of 0.2.0 tell apart how `study start` was called."""
    return "study" if told in ("make", "installed", "python") else told


class StartCommand(Strict):
    """What a start was called with, but for the names of its studies."""

    program: Annotated[Literal["snakemake", "study"], BeforeValidator(_program)] = "snakemake"
    files: dict[str, str] = {}
    """The path of each study that was called by its file."""
    options: list[str] = []
    """Snakemake's options, each with its value: the folder, the profile."""
    config: dict[str, Any] = {}
    """Keys of `config/config.yaml` that are not at their defaults."""

    def again(self, study: str, **changes: Any) -> str:
        """Return the command for one study; ``changes`` replace or add keys, overrides are added to
        those given.

        It can be typed in bash and in zsh.
        """
        overrides = self.config.get("overrides", {}) | changes.pop("overrides", {})
        config = self.config | changes | ({"overrides": overrides} if overrides else {})
        called = self.files.get(study, study)
        keys = [f"{key}={flow(value)}" for key, value in config.items()]
        told = shlex.join([*self.options, "--config", f"studies=[{flow(called)}]", *keys])
        if self.program == "snakemake":
            cores = (
                ""
                if {option.partition("=")[0] for option in self.options} & CORES
                else "--cores 1 "
            )
            return f"snakemake {cores}{told}"
        handed_on = [*self.options, *(["--config", *keys] if keys else [])]
        return (
            f"{own_command()} start "
            f"{shlex.join([called, *(['--', *handed_on] if handed_on else [])])}"
        )

    def without_folders(self) -> "StartCommand":
        """Return the command with each absolute path cut to its base name: people share pages."""
        return self.model_validate(plain(self.model_dump()))

    def retry(self, study: str, *options: str) -> str:
        """Return the command that moves records of a study aside, in the folder of the start."""
        folders = [one.partition("=")[2] for one in self.options if one.startswith("--directory=")]
        results = ["--results", str(Path(folders[-1], "results"))] if folders else []
        program = own_command() if self.program == "study" else "python -m study"
        return f"{program} retry {shlex.join([study, *options, *results])}"


def own_command() -> str:
    """Return how our command is called: in a checkout by its own Python, without activation."""
    return "study" if ROOT == INSTALLED else ".venv/bin/python -m study"


def options_of(arguments: Sequence[str]) -> list[str]:
    """Return those of Snakemake's arguments that say where and with what a start is made, as
    ``--name=value``."""
    found, waiting = list[str](), list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word[:2] in SHORT and word[2:]:  # -dFOLDER
            word = f"{SHORT[word[:2]]}={word[2:].removeprefix('=')}"
        name, equals, value = word.partition("=")
        if (name := SHORT.get(name, name)) in REPEATED and (equals or waiting):
            found.append(f"{name}={value if equals else waiting.pop(0)}")
    return [option for option in found if option != "--cores=1"]


def flow(value: Any) -> str:
    """Return a value as YAML on one line, which Snakemake's ``--config`` reads."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in NO_TEXT:
        return value
    return json.dumps(value)


FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
"""A name that leads into no other folder."""


class Plan(Versioned):
    """A study and its runs, in the order in which they are to be executed."""

    name: str
    study: Study
    runs: list[Run]
    engine: str
    engine_reason: str
    images: dict[str, ImageRequest] = {}
    """The image of each device, and of each level of `image`, by name; empty on the host."""
    environments: dict[str, str] = {}
    """The path of the lock of each environment of packages, by the environment's name."""
    packages: dict[str, str] = {}
    """Versions of the packages that the runs import on the host, and that these ask for, as
    installed when the plan was made; empty where images hold them."""
    start: StartCommand = StartCommand()
    """What the start that made the plan was called with, to print it again with one change."""

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the plan in JSON, without the keys that went. Raise :class:`StudyError` with the
        first bad key."""
        return super().of_text(without_gone(text))

    @model_validator(mode="after")
    def _names_stay_in_the_results(self) -> Self:
        named = [("name", self.name)]
        for run in self.runs:
            keys = (
                ("name", "key") if run.settings.command else ("name", "key", "dataset", "weights")
            )
            named += [(key, getattr(run, key)) for key in keys]
        for key, name in named:
            if not FILE_NAME.fullmatch(name):
                raise ValueRefused(
                    key=key, value=name, allowed="letters, digits, dots, _ and -, as in a file"
                )
        return self

    @property
    def text(self) -> str:
        """The text of its file."""
        return self.model_dump_json(indent=1)

    @cached_property
    def blocks(self) -> int:
        """Number of its blocks."""
        return max((run.block for run in self.runs), default=0)

    def preparing_image(self) -> str | None:
        """Return the name of the image that prepares data and weights: that of a run which can be
        made here, since the images of both devices hold the same software. None if there is
        none."""
        used = {run.image for run in self.runs if not run.unavailable}
        return min(used, key=lambda name: ("-" in name, name), default=None)

    def seed_name(self, run: Run) -> str:
        """Return the name from which a run's seed is computed: its own, without the factors
        that leave the work the same.

        One process and several, and both runs of a null control, therefore start from the same
        weights, and draw the same batches.
        """
        levels = run.setting.levels
        rest = {key: level for key, level in levels.items() if not known(key).same_work}
        if rest == levels:
            return run.name
        return f"{name_of(self.study, rest)}-r{run.block}"

    def runs_with(self, kind: Literal["dataset", "weights"], name: str) -> list[Run]:
        """Return the runs that use the dataset, or the decision about weights, called ``name``.

        Raise :class:`StudyError` if there are none.
        """
        runs = [run for run in self.runs if getattr(run, kind) == name]
        if not runs:
            known = ", ".join(dict.fromkeys(str(getattr(run, kind)) for run in self.runs))
            raise StudyError(f"{kind}: {self.name} plans no {kind} {name!r}; allowed: {known}")
        return runs


def table(plan: Plan) -> str:
    """Return the runs as a text table, in which each run that cannot be made here is marked."""
    head = ["position", "block", "name", *plan.study.factors, "key", ""]
    rows = [
        [
            str(run.position),
            str(run.block),
            run.name,
            *(str(get(run.settings, key)) for key in plan.study.factors),
            run.key,
            "unavailable" if run.unavailable else "",
        ]
        for run in plan.runs
    ]
    return "\n".join(aligned([head, *rows]))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines whose columns begin at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


class Length(Strict):
    """The length that a study with a ladder has in a folder of results: chosen once."""

    remedy = "remove it, and the next start chooses anew"
    rung: dict[str, int]
    """The values of the rung; empty for the study as its file has it."""
    minutes: float
    """Minutes that its runs were foretold to take."""


def length_of(study: str, files: Results) -> Length | None:
    """Return the length that was chosen for a study; None if none was yet."""
    path = files.length(study)
    return Length.read(path) if path.exists() else None


class Selected(Strict):
    """The studies of the last start."""

    studies: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]] = Field(min_length=1)


def write_plans(plans: Sequence[Plan], results: Path) -> None:
    """Write ``results/plan.json`` (the selected studies), and ``results/<study>/plan.json`` for
    each study."""
    layout = Results(results)
    for plan in plans:
        plan.write(layout.plan(plan.name))
    write_if_changed(
        layout.selection, json.dumps({"studies": [plan.name for plan in plans]}, indent=1)
    )


def selected(results: Path) -> list[str]:
    """Return the names of the studies of the last start; in a folder that no start wrote, those of
    all its studies.

    Raise :class:`StudyError` if there is none.
    """
    selection = Results(results).selection
    shared = (
        []
        if selection.exists()
        else sorted(plan.parent.name for plan in results.glob("*/plan.json"))
    )
    return shared or Selected.read(selection).studies


def read_earlier(names: Iterable[str], results: Path) -> dict[str, Plan]:
    """Return the last plan of each study in ``names`` that has a readable one."""
    plans = {}
    for name in names:
        with suppress(StudyError):  # a damaged plan counts as none
            plans[name] = Plan.read(Results(results).plan(name))
    return plans
