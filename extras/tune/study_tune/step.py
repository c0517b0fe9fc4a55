"""The step ``tune``: the name of a study and a time in; a race of runs, and the study file that
repeats it, out."""

import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from study.analysis.analysis import result_of
from study.analysis.groups import GroupFit, groups_of
from study.analysis.report.step import report_now
from study.analysis.stats.critical_values import against_one
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import LogModel
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.base import devices, strict_yaml
from study.base.errors import StudyError
from study.base.files import write_whole
from study.config.load import read_selection, read_study, study_file, study_name
from study.config.sections import Device
from study.config.study import Study
from study.data import sources
from study.host.plan import configuration
from study_tune import words
from study_tune.race import Race, Setting, Standing
from study_tune.space import Levels, Space, space_of

ITS_OWN = [
    "factors",
    "only",
    "null_control",
    "replicates",
    "curve",
    "time",
    "effects",
    "contrast",
    "reduced",
    "claims",
]
"""Keys of a study that its race does not take over."""
LEAST_MINUTES = 0.5
RESULTS = Path("results")
"""Where Snakemake leaves them, in the folder of the start."""


def tune(study: str, minutes: float, device: Device | None, say: Callable[[str], None]) -> None:
    """Race what may train ``study`` faster on ``device`` (default: its first that is here), and say
    what won.

    The race is a study of its own, ``<study>-tuned``. Raise :class:`StudyError` if there is one
    already, or if nothing can be trained.
    """
    began, name = time.monotonic(), f"{study_name(study)}-tuned"
    studies, here = configuration.study_folders(), Path.cwd()
    file = (studies[0] if studies[0].is_relative_to(here) else here).relative_to(
        here
    ) / f"{name}.yaml"
    if minutes < LEAST_MINUTES:
        raise StudyError(f"--minutes: {minutes:g} is not allowed: at least {LEAST_MINUTES:g}")
    if file.exists():
        raise StudyError(
            f"{file.name} is there already: remove it to race again, or start it to repeat its runs"
        )
    base = read_study(
        study, studies, read_selection(configuration.of_one_study(study, [], None, False))
    )
    chosen = _device(base, device)
    space = space_of(base, chosen, sources.inspect(base.dataset).train_images)
    course = _Course(name, strict_yaml.read_mapping(study_file(study, studies)), space, file)
    race = Race(space, course.measure, time.monotonic, began + 60 * minutes)
    try:
        winner, standings = race.run()
    finally:
        if Results(RESULTS).plan(name).exists():
            report_now([name], RESULTS, Results(RESULTS).report, say)
    gain = course.gain(race.tried, winner)
    for line in words.ending(
        base, space, race.tried, winner, standings, gain, race.runs, time.monotonic() - began
    ):
        say(line)
    say(f"to repeat it: {file}")


def _device(study: Study, given: Device | None) -> Device:
    """Return the device of the race. Raise :class:`StudyError` if the machine does not have it."""
    named: list[Device] = [given] if given else study.levels_of("device")
    missing = {one: devices.absent(one) for one in named}
    for one, why in missing.items():
        if not why:
            return one
    raise StudyError(
        f"device: {', '.join(named)} is not allowed here: {next(iter(missing.values()))}"
    )


@dataclass(frozen=True)
class _Course:
    """The study of a race: its file is written anew before each start, with the runs to be made."""

    name: str
    values: Mapping[str, Any]
    space: Space
    file: Path

    def measure(
        self, tried: Sequence[Levels], runs: Mapping[Setting, int], within: float
    ) -> dict[Setting, Standing]:
        """Make the runs of these settings, and return what is known of each that has a successful
        one."""
        self.write(tried, runs)
        start = [sys.executable, "-m", "study", "start", str(self.file), "--", "--until", "measure"]
        if subprocess.run(
            [*start, "--config", f"time_budget_minutes={within / 60:.2f}"], check=False
        ).returncode:
            raise StudyError("tune: the start did not end well; what it measured is kept")
        result = result_of(Results(RESULTS), self.name)
        places = _places(result.plan, tried)
        (group,) = groups_of(result.plan.study, result.frame)
        (told,) = result.analysis.groups
        labels = {str(row.level): places[str(row.run)] for row in group.part.itertuples()}
        processes = group.part.groupby("level")["process_seconds"].mean()
        between = seconds_between(group.part)
        return {
            labels[level.label]: Standing(
                seconds=level.time.value,
                run_seconds=float(processes[level.label]) + between,
                learned=_learned(group, level.label),
                tied=level.undetermined is not None or level.label in told.indistinguishable,
            )
            for level in told.levels
            if level.time
        }

    def write(self, tried: Sequence[Levels], runs: Mapping[Setting, int]) -> None:
        """Write the study's file."""
        many = [key for key, levels in self.space.factors.items() if len(levels) > 1]
        own = {key: value for key, value in self.values.items() if key not in ITS_OWN}
        study = own | {
            "title": f"{own['title']}, tuned",
            "question": "Which settings train this network fastest on this machine?",
            "factors": dict(self.space.factors),
            "replicates": max(runs.values()),
            "only": [
                {key: tried[one][key] for key in many} | {"replicates": count}
                for one, count in runs.items()
            ],
        }
        told = (
            f"# Written by `python -m study tune {self.name.removesuffix('-tuned')}`: "
            "every setting with its runs.\n"
        )
        write_whole(self.file, told + yaml.safe_dump(study, sort_keys=False, width=120))

    def gain(self, tried: Sequence[Levels], winner: Setting) -> words.Gain | None:
        """Return how many times as fast as the baseline the winner is; None where one of them has
        no run."""
        result = result_of(Results(RESULTS), self.name)
        places = _places(result.plan, tried)
        (group,) = groups_of(result.plan.study, result.frame)
        levels = {places[str(row.run)]: str(row.level) for row in group.clean.itertuples()}
        if winner == 0 or group.model is None or not {0, winner} <= set(levels):
            return None
        base, best = levels[0], levels[winner]
        accuracy = group.clean.groupby("level")["accuracy"].mean()
        runs = group.clean["level"].value_counts()
        times_as_fast = gain_over(group.model, base, best)
        return words.Gain(
            times_as_fast,
            int(min(runs[base], runs[best])),
            float(accuracy[base]),
            float(accuracy[best]),
        )


def gain_over(model: LogModel, base: Hashable, winner: Hashable) -> Estimate:
    """Return how many times as fast as ``base`` the winner is, with bounds that hold for the gain
    of every setting.

    The winner was chosen for its times, so its own interval would be too narrow: these are
    Dunnett's two-sided bounds over all settings of the model (Dunnett 1955). There are none without
    replicates.
    """
    return model.ratio(base, winner, against_one(len(model.levels)))


def seconds_between(runs: pd.DataFrame) -> float:
    """Return the mean seconds between the process of a run and that of the next one of its start; 0
    where none is."""
    ordered = runs.dropna(subset=["started", "process_seconds"]).sort_values("started")
    begun = pd.to_datetime(ordered["started"]).map(pd.Timestamp.timestamp)
    gaps = -begun.groupby(ordered["session"]).diff(-1) - ordered["process_seconds"]
    return max(float(gaps.mean()), 0.0) if gaps.notna().any() else 0.0


def _learned(group: GroupFit, level: str) -> bool | None:
    """Return whether a level has learned; None where its runs do not tell, as with few images to
    validate on."""
    if level not in group.ineligible:
        return True
    return None if group.learning[level].learned is None and level not in group.censored else False


def _places(plan: Plan, tried: Sequence[Levels]) -> dict[str, Setting]:
    """Return the setting of each run, by the run's name."""
    return {
        run.name: next(
            place
            for place, levels in enumerate(tried)
            if run.setting.levels.items() >= levels.items()
        )
        for run in plan.runs
    }
