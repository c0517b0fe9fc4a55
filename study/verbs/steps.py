"""What the rules of the workflow call, a verb for each step, and what the Makefile calls."""

import argparse

from study.base import plain_matplotlib
from study.verbs.declare import LOG, PLAN, RESULTS, argument, verb

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


@verb(
    STUDY,
    argument("block", help="name of the block, as in `snakemake -n`"),
    RESULTS,
    LOG,
)
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
