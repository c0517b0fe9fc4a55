# The plans of this start. The logic is in study/host/plan/workflow.py, where it is tested.

import sys
from pathlib import Path

from snakemake.settings.types import DeploymentMethod
from study.base.errors import StudyError
from study.host.plan.configuration import study_folders
from study.host.plan.workflow import chosen, joined, start, use_this_checkout

use_this_checkout(BASE)

if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method:
    sys.exit(
        "error: --sdm apptainer: Snakemake's own containers hold no training stack; use --config container=docker"
    )

# Snakemake knows a number of jobs, in place of one of cores, where an executor makes them on other machines.
ON_OTHER_MACHINES = workflow.resource_settings.nodes is not None or not workflow.is_main_process

if workflow.modifier.path_modifier.replace_prefix("results") != "results":
    sys.exit(
        "error: prefix: the paths of this workflow begin with results; start in another folder, or with --directory"
    )

try:
    if hasattr(workflow, "study"):  # `use rule measure from ... with` reads this file again
        CONFIG, FLOW, LOCK = workflow.study
        if CONFIG != config:
            sys.exit(
                "error: module: a start has one configuration of this workflow, for it has one folder results"
            )
    elif workflow.is_main_process:
        FLOW, LOCK = start(
            config,
            study_folders(),
            Path("results"),
            READ_ONLY,
            fetch="--lint" not in sys.argv,
            on_other_machines=ON_OTHER_MACHINES,
        )
    else:
        FLOW, LOCK = joined(config, Path("results")), None
except StudyError as error:
    sys.exit(f"error: {error}")
except ModuleNotFoundError as error:
    sys.exit(f"error: {error}: {NOT_INSTALLED}")

if workflow.output_settings.dryrun and workflow.is_main_process and not hasattr(workflow, "study"):
    FLOW.foretell()
workflow.study = config, FLOW, LOCK


wildcard_constraints:
    study="|".join(FLOW.studies),
    block=r"[0-9]+-[0-9a-f]{8}(\.[A-Za-z0-9_.-]+)?",
    image="(cpu|cuda)(-[0-9a-f]{8})?",


def requested(name):
    """Return the function that tells Snakemake what a block asks an executor for under the name of a resource."""
    return lambda wc: FLOW.resource(wc.study, wc.block, name)


def blocks(wildcards):
    """Return the blocks of a study, once its length is chosen."""
    global FLOW
    if wildcards.study in FLOW.waiting:
        checkpoints.length.get(study=wildcards.study)
        FLOW = chosen(FLOW, config, study_folders())
    return ancient(FLOW.inputs(wildcards.study))
