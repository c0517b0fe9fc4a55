# What a start is to do: study/host/plan/workflow.py. To read it changes nothing.

import sys
from pathlib import Path

from study.base.errors import StudyError
from study.host.plan.configuration import study_folders
from study.host.plan.workflow import Request, chosen, joined, planned, use_this_checkout

use_this_checkout(BASE)

# Snakemake knows a number of jobs, in place of one of cores, where an executor makes them on other machines. Its
# documents name neither `nodes` nor `is_main_process`.
ON_OTHER_MACHINES = workflow.nodes is not None or not workflow.is_main_process
# Snakemake takes what there is; on another machine `set-threads` of a profile counts.
EVERY_CORE = 1 if ON_OTHER_MACHINES else 1024
STACK = "../envs/study.yaml"

try:
    if workflow.is_main_process:
        FLOW = planned(
            Request(config=config, on_other_machines=ON_OTHER_MACHINES, arguments=sys.argv),
            study_folders(),
            Path("results"),
        )
    else:
        FLOW = joined(config, Path("results"))
except StudyError as error:
    sys.exit(f"error: {error}")
except ModuleNotFoundError as error:
    sys.exit(f"error: {error}: {NOT_INSTALLED}")


wildcard_constraints:
    study="|".join(FLOW.studies),
    block=r"[0-9]+-[0-9a-f]{8}(\.[A-Za-z0-9_.-]+)?",
    image="(cpu|cuda)(-[0-9a-f]{8})?",


localrules:
    plan,
    image,
    environment,
    dataset,
    weights,
    analyse,
    report,
    blog_figures,
    devices,


def planned_by(study, path):
    """Return a function for the plan that a path is made by; it counts where that is made now."""

    def found(wildcards):
        plan = FLOW.results.plan(study(wildcards))
        if FLOW.makes(path.format(**wildcards)):
            return plan
        return ancient(plan) if plan.exists() else []

    return found


def requested(name):
    """Return the function that tells Snakemake what a block asks an executor for."""
    return lambda wc: FLOW.resource(wc.study, wc.block, name)


def blocks(wildcards):
    """Return the blocks of a study, once its length is chosen."""
    global FLOW
    if wildcards.study in FLOW.waiting:
        checkpoints.length.get(study=wildcards.study)
        FLOW = chosen(FLOW, study_folders())
    return ancient(FLOW.inputs(wildcards.study))
