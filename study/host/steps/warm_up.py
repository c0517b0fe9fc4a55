"""The warm-up runs of a start: on each machine and device, each way of computing once before a
block counts, in a few steps.

A process leaves nothing to the next but what the machine keeps: files in memory, the driver's
compiled kernels, the clocks. A few steps are enough for that, and they tell the pace of each
setting, from which the time of a whole run is foretold.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from study.artifacts.layout import Results
from study.artifacts.plan import Length, Plan
from study.artifacts.prepared import Manifest
from study.artifacts.record_store import Session, read_record, read_session
from study.artifacts.run import Run
from study.base.errors import StudyError, duration_words
from study.base.files import digest
from study.base.privacy import node
from study.config.settings import DEFAULTS, KEYS, Settings, get, in_small, with_values
from study.host.fork_servers import start_fork_servers
from study.host.steps.attempt import RunContext, attempt
from study.host.steps.watch import alone_on_this_machine
from study.host.supervise import new_log

Say = Callable[[str], None]
"""What gets a line for the terminal."""


def pace_name(run: Run) -> str:
    """Return the name of the pace of a run: that of its settings in small."""
    return digest(in_small(run.settings).model_dump())


def way_of(run: Run) -> str:
    """Return a name that runs share which compute in one way, and differ in their batches alone.

    Several processes that train together end with their run, so each of their settings is a way.
    """
    settings = in_small(run.settings)
    if settings.command and not settings.command.small:
        return digest([run.image, run.environment])  # a whole run is enough for all
    usual = {}
    if settings.training.strategy == "single":
        usual = {key: get(DEFAULTS, key) for key, known in KEYS.items() if known.same_way}
    shapes = with_values(settings.model_dump(), usual)
    return digest([run.image, run.environment, run.dataset, run.weights, shapes])


def seconds_of(keys: Iterable[str], known: Mapping[str, float]) -> float:
    """Return the seconds that runs with these keys will take; 0 where nothing is known.

    A setting that was never measured counts as the longest of all.
    """
    longest = max(known.values(), default=0.0)
    return sum(known.get(key, longest) for key in keys)


@dataclass(frozen=True)
class WarmUp:
    """The warm-up runs of a start, in the folder of its results; ``say`` gets lines for the
    terminal."""

    plan: Plan
    files: Results
    session: Session
    say: Say

    @cached_property
    def settings(self) -> dict[str, Run]:
        """A run of each setting of the plan, by its key."""
        return {run.key: run for run in self.plan.runs}

    @cached_property
    def ways(self) -> dict[str, str]:
        """The name of the way of computing of each setting, by the key of its runs."""
        return {key: way_of(run) for key, run in self.settings.items()}

    def path(self, run: Run) -> Path:
        """Return the path of the record of the warm-up run of a run's way of computing."""
        return self.files.warm_up_run(
            self.session.name, node(), run.settings.device, self.ways[run.key]
        )

    def made(self, run: Run) -> bool:
        """Return whether the warm-up run for ``run`` succeeded on this machine in this start;
        without one, execute it.

        Its record lies in a folder of its own. If it fails, or cannot be started, that is said, and
        the runs go on.
        """
        if not self.session.warm_up_run:
            return False
        path, way = self.path(run), self.ways[run.key]
        alike = [one for key, one in self.settings.items() if self.ways[key] == way]
        paced = {pace_name(one): in_small(one.settings) for one in (run, *alike)}
        command = run.settings.command
        small = "" if command and not command.small else ", in small"
        title = f"warm-up run on {run.settings.device}, like {run.name}{small}"
        try:
            if not path.exists():
                like = run.model_copy(update={"settings": in_small(run.settings)})
                with new_log(self.files.log("warm_up_runs", path.stem)) as file:
                    context = RunContext(
                        self.plan, like, self.files.root, self.session, title, file, paced=paced
                    )
                    record = attempt(context).keep(path, path.with_suffix(".parquet"))
                told = f" ({record.message})" if record.message else ""
                seconds = f"{record.process_seconds:.1f} s{told}; in no number"
                self.say(f"{title}: {record.outcome}, {seconds}")
            return read_record(path).outcome == "ok"
        except StudyError as error:
            self.say(f"warm-up run on {run.settings.device}: {error}")
            return False

    def foretold(self, rung: Mapping[str, Any] | None = None) -> dict[str, float]:
        """Return the seconds that each run will take, by its key, as the warm-up runs of this start
        foretell them; with the values of a rung, if one is given.

        A setting whose steps there was no time for is foretold from the others of its way.
        """
        known = {}
        found = {}
        for run in self.settings.values():
            path = self.path(run)
            if path not in known:
                known[path] = read_record(path) if path.exists() else None
            record = known[path]
            if record and record.command and record.key == run.key and not rung:
                found[run.key] = record.process_seconds
            if record and record.timeline and record.paces and run.dataset:
                own = record.paces.get(pace_name(run))
                paces = [own] if own else record.paces.values()
                manifest = Manifest.read(self.files.manifest(run.dataset))
                process = record.process_seconds - record.timeline.training_seconds
                changed = with_values(run.settings.model_dump(), dict(rung or {}))
                settings = Settings.model_validate(changed)
                seconds = min(pace.run_seconds(settings, manifest) for pace in paces)
                found[run.key] = process + seconds
        return found


def choose_length(study: str, results: Path, say: Say) -> None:
    """Write the length that a study with a ladder has in these results: the first rung that is
    foretold to end in its time, or else the last. ``say`` gets one line about it."""
    files = Results(results)
    plan, session = Plan.read(files.plan(study)), read_session(files.session(study))
    ladder = plan.study.ladder
    # The workflow asks for a length where there is a ladder.
    assert ladder
    warm_up = WarmUp(plan, files, session.model_copy(update={"warm_up_run": True}), say)
    runs = [run for run in plan.runs if run.block == 1 and not run.unavailable]
    start_fork_servers([plan], [(study, run.name) for run in runs], files)
    with alone_on_this_machine(f"{study}, its length"):
        for run in runs:
            warm_up.made(run)
    forms: Sequence[Mapping[Any, Any]] = [{}, *ladder.rungs]
    rung, minutes = forms[0], 0.0
    for rung in forms:
        seconds = warm_up.foretold({key: rung[key] for key in rung if key != "replicates"})
        block = seconds_of([run.key for run in runs], seconds)
        minutes = rung.get("replicates", plan.study.replicates) * block / 60
        if minutes <= ladder.minutes:
            break
    Length(rung=dict(rung), minutes=minutes).write(files.length(study))
    shorter = ", ".join(f"{key}: {value}" for key, value in rung.items())
    say(
        f"{study}: {shorter or 'at its full length'}, about {duration_words(60 * minutes)} by a "
        f"few steps of each setting (asked for: {ladder.minutes:g} min)"
    )
