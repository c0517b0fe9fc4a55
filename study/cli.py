"""The commands: one verb for each stage of the pipeline. Each verb imports only what it needs."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from study.base.errors import INTERRUPTED, StudyError, printable
from study.base.processes import end_when_told

Argument = tuple[tuple[str, ...], dict[str, Any]]
Verb = Callable[[argparse.Namespace], str | None]

NOT_PASSED = 3
"""Exit code of ``study gate`` for a slowdown or a missing setting: 1 is an error, and 2 a wrong command line."""
VERBS: list[tuple[Verb, tuple[Argument, ...]]] = []
"""The functions below, in their order, with their arguments."""


def main(arguments: Sequence[str] | None = None, prog: str = "study") -> int:
    """Run one verb, and return the exit code. ``prog`` is the command as the user typed it."""
    try:
        return _done(arguments, prog)
    except KeyboardInterrupt:
        _say(INTERRUPTED, None)
        return 130


def step(*arguments: str) -> int:
    """Run one verb of the workflow in a process that was forked for it, and return the exit code."""
    end_when_told()
    try:
        return _done(arguments, prog="python -m study")
    except KeyboardInterrupt:  # the start says how to go on
        return 130


def _done(arguments: Sequence[str] | None, prog: str) -> int:
    options = _parser(prog).parse_args(arguments)
    log = getattr(options, "log", None)
    try:
        told = options.call(options)
        if told:
            _say(told, log)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # `python -m study plan x | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except StudyError as error:
        _say(f"error: {error}", log)
        return 1
    except OSError as error:  # a file that cannot be read or written
        where = f"{error.filename}: " if error.filename else ""
        _say(f"error: {StudyError(f'{where}{error.strerror or error}')}", log)
        return 1


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {StudyError(message)}; see {self.prog} --help\n")


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = _Parser(prog=prog, description="Plan, measure and analyse training studies.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    for call, arguments in VERBS:
        one = verbs.add_parser(call.__name__, help=call.__doc__, description=call.__doc__)
        one.set_defaults(call=call)
        for names, settings in arguments:
            one.add_argument(*names, **settings)
    return parser


def _say(message: str, log: Path | None) -> None:
    message = printable(message)  # a record's words may come from a model
    print(message, file=sys.stderr, flush=True)
    if log:
        with suppress(OSError):  # the terminal has the message
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("a", encoding="utf-8") as file:
                file.write(message + "\n")


def _print(text: str) -> None:
    """Print lines whose words may come from a file: what steers a terminal is escaped."""
    print("\n".join(map(printable, text.split("\n"))))


def _not_ahead(*folders: Path) -> None:
    """Set what a step reads in these folders of results back to now if the clock was set back since it was made."""
    from study.base.files import set_back

    names = ("plan.json", ".measured", "timings.csv", "fit.json", "figures", "stamps/*")
    set_back(file for folder in folders for name in names for file in folder.glob(name))


def verb(*arguments: Argument) -> Callable[[Verb], Verb]:
    """Make a function a verb of its name, with its docstring as help.

    The function takes the parsed arguments. A text that it returns goes to standard error and to the log.
    """

    def declare(call: Verb) -> Verb:
        VERBS.append((call, arguments))
        return call

    return declare


def argument(*names: str, **settings: Any) -> Argument:
    """Return one argument of a verb, in the words of :meth:`argparse.ArgumentParser.add_argument`."""
    return names, settings


def _free(text: str) -> Path:
    """Return the path of a file to be written. Refuse that of a measurement, and of what is there and is no file."""
    from study.artifacts.shelf import is_measurement

    if is_measurement(Path(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: a measurement lies there; name another file")
    with suppress(OSError):  # a name that is too long is refused where it is written
        if not text or (Path(text).exists() and not Path(text).is_file()):
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it is no file; name a file to write")
    return Path(text)


def _share(text: str) -> float:
    """Return a number above 0 and up to 1."""
    with suppress(ValueError):
        if 0 < float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not allowed: a number above 0 and up to 1")


PLAN = argument("plan", type=Path, help="a study's plan.json")
TIMINGS = argument("timings", type=Path, help="a study's timings.csv")
RECORDS = argument("--records", type=Path, required=True, metavar="FOLDER", help="folder of the study's records")
TELEMETRY = argument("--telemetry", type=Path, required=True, metavar="FOLDER", help="folder of the runs' samples")
DEVICE = argument("device", choices=["cpu", "cuda"])
RESULTS = argument(
    "--results", type=Path, default=Path("results"), metavar="FOLDER", help="folder of the results (default: results)"
)
LOG = argument("--log", type=_free, metavar="FILE", help="file to which messages are also written")


@verb(
    argument("study", help="name of a file in config/studies"),
    argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the study"),
    argument("--device", action="append", metavar="DEVICE", help="cpu or cuda, instead of the study's"),
    argument("--reduced", action="store_true", help="use the study's keys for a machine with two CPU cores"),
    RESULTS,
)
def plan(options: argparse.Namespace) -> None:
    """Print the runs of a study (name, factors, block, position), and sum them up."""
    from study.artifacts.layout import Results
    from study.artifacts.plan import table
    from study.base import checkout
    from study.host.plan import configuration, outlook, workflow

    checkout.root()
    config = configuration.of_one_study(options.study, options.set, options.device, options.reduced)
    planned = workflow.plans_for(config, configuration.in_use("studies"), options.results)[0]
    for line in (table(planned), *outlook.of_plan(planned, Results(options.results))):
        _print(line)


@verb(argument("snakemake", nargs="*", help="after --: the arguments that Snakemake gets"))
def engine(options: argparse.Namespace) -> None:
    """Print the engine of the runs: docker, podman, apptainer or none."""
    from study.base import checkout
    from study.config.load import read_selection
    from study.host.engine import place
    from study.host.plan import configuration

    checkout.root()
    print(place.choose(read_selection(configuration.as_snakemake_reads_it(options.snakemake)), fetch=True).engine)


@verb(argument("snakemake", nargs="*", help="after --: the arguments that Snakemake gets"))
def start(options: argparse.Namespace) -> None:
    """Run Snakemake with these arguments. Its own words go to its log in .snakemake/log."""
    from study.base import checkout
    from study.host.plan.terminal import snakemake

    checkout.root()
    sys.exit(snakemake(options.snakemake))


@verb(
    argument("study", help="name of a file in config/studies"),
    argument("--minutes", type=float, default=5.0, help="time of the race (default: 5)"),
    argument("--device", choices=["cpu", "cuda"], help="default: the first of the study's devices that is here"),
)
def tune(options: argparse.Namespace) -> None:
    """Find the settings that train a study's network fastest on this machine, and what they gain."""
    from study.base import checkout
    from study.tune.step import tune

    checkout.root()
    tune(options.study, options.minutes, options.device, partial(_say, log=None))


@verb(PLAN, argument("image", help="name of the image in the plan: cpu, cuda"), RESULTS, LOG)
def image(options: argparse.Namespace) -> str:
    """Build, load or pull an image of a study, and test it once."""
    from study.base import checkout
    from study.base.processes import end_with_parent
    from study.host.steps.image import prepare

    checkout.root()
    end_with_parent()
    return prepare(options.plan, options.image, options.results, options.log)


@verb(DEVICE, RESULTS)
def archive(options: argparse.Namespace) -> None:
    """Save a device's image for a site without a registry."""
    from study.host.steps.image import archive

    target = archive(options.device, options.results)
    print(f"{target}: on another machine, add: --config 'images={{{options.device}: {target.name}}}'")


@verb(DEVICE, RESULTS)
def inventory(options: argparse.Namespace) -> None:
    """Write what a device's image holds: packages of Python and Debian, in CycloneDX."""
    from study.host.steps.inventory import write_inventory

    print(write_inventory(options.device, options.results))


@verb(PLAN, argument("dataset", help="name of the dataset in the plan"), RESULTS, LOG)
def dataset(options: argparse.Namespace) -> str:
    """Draw, verify or download a dataset, and write its manifest."""
    from study.base.processes import end_with_parent
    from study.host.steps.dataset import prepare

    end_with_parent()
    return prepare(options.plan, options.dataset, options.results, options.log)


@verb(
    PLAN,
    argument("weights", help="name of the decision in the plan"),
    argument("--here", action="store_true", help="decide in this process, which needs torch"),
    argument("--memory-bytes", type=int, metavar="BYTES", help="with --here: memory that this process may take"),
    RESULTS,
    LOG,
)
def weights(options: argparse.Namespace) -> str | None:
    """Decide where a model's weights come from, once per study, and try the model."""
    from study.base.processes import end_with_parent, limit_memory
    from study.host.steps.weights import decide_here, prepare

    end_with_parent()
    if not options.here:
        return prepare(options.plan, options.weights, options.results, options.log)
    from study.training.models.pretrained import decide

    if options.memory_bytes:
        limit_memory(options.memory_bytes)
    decide_here(options.plan, options.weights, options.results, decide)
    return None


@verb(
    PLAN,
    argument("run", help="name of the run in the plan"),
    argument("--counter", default="run", help="progress label for the terminal, e.g. 'run 3 of 10'"),
    RESULTS,
    LOG,
)
def run(options: argparse.Namespace) -> str | None:
    """Measure one planned run in a fresh process, and write its record."""
    from study.base import checkout
    from study.base.processes import end_with_parent
    from study.host.steps.launch import measure

    checkout.root()
    end_with_parent()
    return measure(options.plan, options.run, options.results, options.log, options.counter)


@verb(
    PLAN,
    RECORDS,
    TELEMETRY,
    argument("--output", type=_free, required=True, metavar="FILE", help="CSV file to write"),
    LOG,
)
def timings(options: argparse.Namespace) -> str | None:
    """Gather the records of a plan into one table."""
    _not_ahead(options.plan.parent)
    from study.analysis.table.step import write_timings

    return write_timings(options.plan, options.records, options.telemetry, options.output)


@verb(
    argument("plan", type=Path, help="a study's plan.json, or any CSV file"),
    argument("timings", type=Path, nargs="?", help="a study's timings.csv; not given with a CSV file"),
    argument("--x", default="batch_size", help="column on the horizontal axis (default: batch_size)"),
    argument("--y", default="seconds", help="column of times in seconds (default: seconds)"),
    argument("--block", help="column that names rows measured together, such as a replicate"),
    argument("--session", help="column that names the start in which a row was measured; its blocks are its own"),
    argument("--output", type=_free, metavar="FILE", help="JSON file to write; required for a study"),
    LOG,
)
def fit(options: argparse.Namespace) -> None:
    """Fit laws to the times of a study (PLAN TIMINGS) or of any table (FILE.csv --x --y)."""
    if options.timings is None:
        return _fit_table(options)
    if options.output is None:
        raise StudyError("--output: missing: name the file to write")
    from study.analysis.stats.step import write_fit

    _not_ahead(options.plan.parent)
    write_fit(options.plan, options.timings, options.output)


def _fit_table(options: argparse.Namespace) -> None:
    from study.analysis.stats.any_table import as_json, checked_table, fit_table
    from study.analysis.table.any_csv import read_csv
    from study.analysis.wording.any_table import as_text
    from study.base.files import write_if_changed

    columns = (options.x, options.y, options.block, options.session)
    curve, optimum = fit_table(checked_table(read_csv(options.plan), *columns, options.plan.name, "--"))
    _print(as_text(curve, optimum, options.x))
    if options.output:
        write_if_changed(options.output, json.dumps(as_json(curve, optimum), indent=1, allow_nan=False))


@verb(
    PLAN,
    TIMINGS,
    argument("fit", type=Path, help="a study's fit.json"),
    RECORDS,
    TELEMETRY,
    argument("--output", type=Path, required=True, metavar="FOLDER", help="folder of the figures"),
    LOG,
)
def figures(options: argparse.Namespace) -> None:
    """Draw the figures of a study as SVG and PNG."""
    from study.analysis.figures.step import write_figures

    _not_ahead(options.plan.parent)
    write_figures(options.plan, options.timings, options.fit, options.records, options.telemetry, options.output)


@verb(argument("--study", help="only the claims of this published study"))
def claims(options: argparse.Namespace) -> None:
    """Print how far the published figures support each published claim."""
    from study.analysis.published.claims import as_text, chosen, published_claims

    _print(as_text(chosen(published_claims(), options.study)))


@verb(
    argument("studies", nargs="*", help="names of the studies (default: those that were started last)"),
    argument("--output", type=_free, metavar="FILE", help="HTML file to write (default: report.html in the results)"),
    argument(
        "--from-tables",
        action="store_true",
        help="use the tables, fits and figures that are there, as the workflow does, and make none",
    ),
    argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="folder of the results, or a bundle (default: results)",
    ),
    LOG,
)
def report(options: argparse.Namespace) -> None:
    """Render one self-contained page from the records that are there, at any time; nothing is measured."""
    packed = options.results.is_file()
    if packed and not options.output:
        raise StudyError("--output: missing: nothing is written into a bundle: name the file to write")
    output = options.output or options.results / "report.html"
    if options.from_tables:
        from study.analysis.report.step import render

        if not options.studies:
            raise StudyError("studies: missing; --from-tables needs the names of the studies")
        _not_ahead(options.results, *(options.results / name for name in options.studies))
        return render(options.studies, options.results, output)
    from study.analysis.report.anytime import report_now
    from study.artifacts.unbundle import as_folders, folder_of

    say = partial(_say, log=options.log)
    with as_folders([options.results], say) as (results,):
        report_now(options.studies, results, output, say, folder_of(options.results) if packed else None)
    return say(f"the report: {output}")


@verb(
    argument("studies", nargs="*", metavar="study", help="name of a study (default: those that were started last)"),
    argument(
        "--output",
        type=_free,
        default="results.crate.zip",
        metavar="FILE",
        help="archive to write (default: results.crate.zip)",
    ),
    RESULTS,
)
def bundle(options: argparse.Namespace) -> str:
    """Write one archive of results, a Workflow Run RO-Crate, from which the same report can be made anywhere."""
    from study.artifacts.bundle import write_bundle
    from study.base import checkout

    write_bundle(options.studies, options.results, checkout.root(), options.output, partial(_say, log=None))
    return f"the bundle: {options.output}"


@verb(
    argument("bundle", type=Path, help="an archive that `study bundle` wrote"),
    argument("folder", type=Path, nargs="?", help="folder to make (default: the archive's name without its ending)"),
)
def unbundle(options: argparse.Namespace) -> str:
    """Unpack a bundle into a new folder of results, whole or not at all, and never outside that folder."""
    from study.artifacts.unbundle import folder_of, unpack

    folder = options.folder or folder_of(options.bundle)
    unpack(options.bundle, folder, partial(_say, log=None))
    return f"the results: {folder}"


@verb(
    argument("studies", nargs="*", metavar="study", help="name of a study (default: those that were started last)"),
    argument("--output", type=Path, required=True, metavar="FOLDER", help="folder of the post and its pictures"),
    RESULTS,
)
def blog(options: argparse.Namespace) -> None:
    """Write a post for a blog (Markdown with front matter, tables and figures) from the records that are there."""
    from study.analysis.blog.step import write_post

    say = partial(_say, log=None)
    say(f"the post: {write_post(options.studies, options.results, options.output, say)}")


@verb(argument("studies", nargs="*", help="names of the studies (default: those of the last start)"), RESULTS)
def answer(options: argparse.Namespace) -> None:
    """Print each study's answer, the report's address, and the next step."""
    from study.analysis.report.ending import ending

    print("\n".join(map(printable, ending(options.studies, options.results))))


@verb(
    argument(
        "folders",
        nargs="+",
        type=Path,
        metavar="folder",
        help="folders of results, or bundles; the first is the baseline",
    ),
    argument("--study", action="append", default=[], help="only this study (repeatable; default: all that each has)"),
    argument("--margin", type=_share, help="ratios up to 1 + this count as equivalent (default: the study's own)"),
    argument("--output", type=_free, help="write the comparison as JSON, too"),
)
def compare(options: argparse.Namespace) -> None:
    """Say which of several results folders is faster at the same work, how sure that is, and what differs."""
    from study.analysis.compare.step import as_text, compare_folders
    from study.artifacts.unbundle import as_folders
    from study.base.files import write_whole

    if len(options.folders) < 2:
        raise StudyError("compare: give two results folders or more")
    with as_folders(options.folders, partial(_say, log=None)) as folders:
        found = compare_folders(folders, options.study, options.margin)
    if options.output:
        values = [one.model_dump(mode="json") for one in found]
        write_whole(options.output, json.dumps(values, indent=1, allow_nan=False))
    _print(as_text(found))


@verb(
    argument("baseline", type=Path, help="results folder, or bundle, with three starts or more of unchanged code"),
    argument("new", type=Path, help="results folder, or bundle, of the code in question"),
    argument("--study", action="append", default=[], help="only this study (repeatable; default: all that both have)"),
    argument("--junit", type=_free, metavar="FILE", help="write a test case for each study, as CI services read it"),
    argument(
        "--history", type=Path, metavar="FOLDER", help="write a CSV of each study's starts, as Apache Otava reads it"
    ),
)
def gate(options: argparse.Namespace) -> None:
    """Exit with 3 if a new result is slower than the baseline's spread explains, or lacks a setting; with 0 if not."""
    from study.analysis.compare.gate import gate_folders, write_histories, write_junit
    from study.artifacts.unbundle import as_folders

    with as_folders([options.baseline, options.new], partial(_say, log=None)) as (baseline, new):
        gated = gate_folders(baseline, new, options.study)
    if options.junit:
        write_junit(gated, options.junit)
    if options.history:
        write_histories(gated, options.history)
    for one in gated:
        _print(one.line)
    if any(one.failed for one in gated):
        sys.stdout.flush()
        sys.exit(NOT_PASSED)


@verb(
    argument("study", help="name of a study with records"),
    argument(
        "--outcome",
        action="append",
        choices=["failed", "unavailable", "out_of_memory", "ok"],
        help="outcome of the records to move (repeatable; default: failed and unavailable)",
    ),
    argument(
        "--weights",
        action="store_true",
        help="instead: look for ImageNet weights again, and move runs with random weights aside",
    ),
    RESULTS,
)
def retry(options: argparse.Namespace) -> None:
    """Move records aside so that their runs are made again. Nothing is deleted."""
    from study.host.steps.retry import retry_outcomes, retry_weights

    if options.weights:
        moved = retry_weights(options.study, options.results)
    else:
        moved = retry_outcomes(options.study, options.results, options.outcome or ["failed", "unavailable"])
    for name in moved:
        print(f"moved to superseded: {name}")
    print(f"{len(moved)} file(s) moved; the next start makes them again")


@verb()
def schema(options: argparse.Namespace) -> None:
    """Write workflow/schemas, config/README.md and docs/timings.md from the models."""
    from study.base import checkout
    from study.base.files import write_whole
    from study.schema import generated_files

    root = checkout.root()
    for path, text in generated_files().items():
        write_whole(root / path, text)
        print(path)
