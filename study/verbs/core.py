"""The verbs of the core: what a user types, and what the rules of the workflow call.

A verb imports what it needs when it is called.
"""

import argparse
import shlex
import sys
from pathlib import Path

from study.base import plain_matplotlib
from study.base.errors import StudyError, printable
from study.verbs.declare import LOG, PLAN, RESULTS, argument, free, print_lines, verb

FACTOR = argument(
    "--factor",
    action="append",
    default=[],
    metavar="NAME=LEVEL,LEVEL",
    help="levels of a placeholder of a command (repeatable)",
)


@verb(
    argument(
        "--torch",
        choices=["lock", "installed"],
        help="the torch of runs on the host: the lock's, or that which is installed for the "
        "Python of the start "
        "(default: the lock's, or the installed one where only that can use the GPU)",
    ),
    FACTOR,
    argument(
        "studies",
        nargs="*",
        metavar="STUDY",
        help="name of a study, or path of its file (default: those of config/config.yaml); with "
        "--factor, or with a space in it, it is a command, whose study is written here; "
        "after --: Snakemake's arguments, such as -- --config time_budget_minutes=10",
    ),
)
def start(options: argparse.Namespace) -> None:
    """Measure studies in this folder, up to the report. Snakemake's own words go to its log in
    .snakemake/log."""
    from study.config.load import ENDING, file_of_command
    from study.host.plan.configuration import bring_training_stack, snakemake

    studies = []
    for one in options.studies:
        if options.factor or (" " in one and not one.endswith(ENDING)):
            one = str(file_of_command(one, options.factor))
            options.tell(f"the study of this command: {one}")
        studies.append(one)
    if options.factor and not studies:
        raise StudyError("--factor: it belongs to a command, as in: study start 'python a.py {n}'")
    bring_training_stack(options.snakemake, studies, options.torch)
    sys.exit(snakemake(options.snakemake, studies))


@verb(
    argument(
        "file",
        nargs="?",
        type=Path,
        default=Path("my.yaml"),
        help="file to write, *.yaml (default: my.yaml)",
    ),
    argument(
        "--command",
        metavar="LINE",
        help="a program and its arguments, in place of a training: 'python train.py --bs {bs}'",
    ),
    FACTOR,
)
def new(options: argparse.Namespace) -> str:
    """Write the file of a first study, in which each line is explained."""
    from study.config.load import command_study, write_first_study

    if options.factor and not options.command:
        raise StudyError("--factor: it belongs to --command")
    told = command_study(options.command, options.factor) if options.command else None
    write_first_study(options.file, told)
    return (
        f"{options.file} is written. To measure it: {options.program} start "
        f"{shlex.quote(str(options.file))}"
    )


@verb(
    argument("study", help="name of a study, or path of its file"),
    argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a key of the study",
    ),
    argument(
        "--device", action="append", metavar="DEVICE", help="cpu or cuda, instead of the study's"
    ),
    argument(
        "--reduced",
        action="store_true",
        help="use the study's keys for a machine with two CPU cores",
    ),
    RESULTS,
)
def plan(options: argparse.Namespace) -> None:
    """Print the runs of a study (name, factors, block, position), and sum them up."""
    from study.artifacts.layout import Results
    from study.artifacts.plan import table
    from study.host.plan import configuration, forecast, workflow

    config = configuration.of_one_study(options.study, options.set, options.device, options.reduced)
    request, folders = workflow.Request(config=config), configuration.study_folders()
    (planned,) = workflow.plans_for(request, folders, options.results)
    told = forecast.of_plan(planned, Results(options.results))
    print_lines("\n".join([table(planned), *told]))


@verb(
    argument(
        "studies", nargs="*", help="names of the studies (default: those that were started last)"
    ),
    argument(
        "--output",
        type=free,
        metavar="FILE",
        help="HTML file to write (default: report.html in the results)",
    ),
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
def report(options: argparse.Namespace) -> str | None:
    """Render one self-contained page from the records that are there, at any time; nothing is
    measured."""
    plain_matplotlib()
    packed = options.results.is_file()
    if packed and not options.output:
        raise StudyError(
            "--output: missing: nothing is written into a bundle: name the file to write"
        )
    output = options.output or options.results / "report.html"
    if options.from_tables:
        from study.analysis.analysis import ending
        from study.analysis.report.step import render

        if not options.studies:
            raise StudyError("studies: missing; --from-tables needs the names of the studies")
        render(options.studies, options.results, output)
        print_lines("\n".join(ending(options.studies, options.results)))
        return None
    from study.analysis.report.step import report_now
    from study.artifacts.bundle import as_folders, folder_of

    with as_folders([options.results]) as (results,):
        report_now(
            options.studies,
            results,
            output,
            options.tell,
            folder_of(options.results) if packed else None,
        )
    return f"the report: {output}"


@verb(
    argument("studies", nargs="*", help="names of the studies (default: those of the last start)"),
    RESULTS,
)
def answer(options: argparse.Namespace) -> None:
    """Print each study's answer, the report's address, and the next step."""
    from study.analysis.analysis import ending
    from study.artifacts.bundle import as_folders

    with as_folders([options.results]) as (results,):
        lines = ending(options.studies, results, address=options.results.is_dir())
    print("\n".join(map(printable, lines)))


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
    from study.artifacts import record_store

    outcomes = None if options.weights else options.outcome or ["failed", "unavailable"]
    moved = record_store.retry(options.study, options.results, outcomes)
    for name in moved:
        print(f"moved to superseded: {name}")
    print(f"{len(moved)} file(s) moved; the next start makes them again")


@verb(
    argument("bundle", type=Path, help="an archive that `study bundle` wrote"),
    argument(
        "folder",
        type=Path,
        nargs="?",
        help="folder to make (default: the archive's name without its ending)",
    ),
)
def unbundle(options: argparse.Namespace) -> str:
    """Unpack a bundle into a new folder of results, whole or not at all, and never outside that
    folder."""
    from study.artifacts.bundle import folder_of, unpack

    folder = options.folder or folder_of(options.bundle)
    unpack(options.bundle, folder)
    return f"the results: {folder}"


# What follows is called by the rules of the workflow, a verb for each step.

STUDY = argument("study", help="name of a study with a plan")


@verb(
    argument("request", help="the configuration and Snakemake's arguments, in JSON"), RESULTS, LOG
)
def begin(options: argparse.Namespace) -> None:
    """Write the plans of a start, and remove what an earlier one left at work."""
    from study.host.plan.workflow import begin as first_step

    first_step(options.request, options.results, options.tell)


@verb(PLAN, argument("image", help="name of the image in the plan: cpu, cuda"), RESULTS, LOG)
def image(options: argparse.Namespace) -> str:
    """Build, load or pull an image of a study, and test it once."""
    from study.host.steps.prepare import prepare_image

    return prepare_image(options.plan, options.image, options.results, options.log)


@verb(PLAN, argument("environment", help="name of the environment in the plan"), RESULTS, LOG)
def environment(options: argparse.Namespace) -> str:
    """Make an environment of packages from a lock, and test it once."""
    from study.host.packages import make

    return make(options.plan, options.environment, options.results, options.log)


@verb(PLAN, argument("dataset", help="name of the dataset in the plan"), RESULTS, LOG)
def dataset(options: argparse.Namespace) -> str:
    """Draw, verify or download a dataset, and write its manifest."""
    from study.host.steps.prepare import prepare_dataset

    return prepare_dataset(options.plan, options.dataset, options.results, options.log)


@verb(
    PLAN,
    argument("weights", help="name of the decision in the plan"),
    argument("--here", action="store_true", help="decide in this process, which needs torch"),
    argument(
        "--memory-bytes",
        type=int,
        metavar="BYTES",
        help="with --here: memory that this process may take",
    ),
    argument("--without", metavar="REASON", help="with --here: why ImageNet's could not be had"),
    RESULTS,
    LOG,
)
def weights(options: argparse.Namespace) -> str | None:
    """Decide where a model's weights come from, once per study, and try the model."""
    from study.base.processes import limit_memory
    from study.host.steps.prepare import decide_weights, prepare_weights

    if not options.here:
        return prepare_weights(options.plan, options.weights, options.results, options.log)
    from study.training.trial import decide_and_try

    if options.memory_bytes:
        limit_memory(options.memory_bytes)
    decide_weights(options.plan, options.weights, options.results, decide_and_try, options.without)
    return None


@verb(STUDY, argument("block", help="name of the block, as in `snakemake -n`"), RESULTS, LOG)
def measure(options: argparse.Namespace) -> None:
    """Measure one block of runs, each in a fresh process, and write its records."""
    from study.host.steps.block import measure_block

    measure_block(options.study, options.block, options.results, options.tell)


@verb(STUDY, RESULTS, LOG)
def length(options: argparse.Namespace) -> None:
    """Choose the length of a study that has a ladder, from a few steps of each setting."""
    from study.host.steps.warm_up import choose_length

    choose_length(options.study, options.results, options.tell)


@verb(STUDY, RESULTS, LOG)
def analyse(options: argparse.Namespace) -> str | None:
    """Write the table, the analysis and the figures of a study from its records."""
    plain_matplotlib()
    from study.analysis.step import write_analysis
    from study.artifacts.layout import Results

    return write_analysis(options.study, Results(options.results))
