# The workflow from a study file to results/report.html. Run it with: snakemake --cores 1
#
# config/studies/*.yaml -> plan -> dataset, weights -> runs -> timings -> fit -> figures -> report

from snakemake.utils import min_version

min_version("9.0")


include: "workflow/rules/terminal.smk"


configfile: f"{workflow.basedir}/config/config.yaml"


report: "workflow/report/workflow.rst"


# The base image of docker/Dockerfile, named here for Snakemake's linter. Snakemake itself can only use
# Apptainer; study/host/engine starts the runs' own containers.
container: "docker://python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b"


include: "workflow/rules/common.smk"
include: "workflow/rules/images.smk"
include: "workflow/rules/dataset.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/report.smk"


# A run that the time budget left has a stamp without a record, for this start alone.
onsuccess:
    FLOW.forget_left()
    say_answer()


onerror:
    FLOW.forget_left()
    FLOW.say_what_is_kept()
    print(f"Snakemake's own log says which step did not end well: {', '.join(log)}", file=sys.stderr)


# Snakemake's limit of jobs in a second looks at all jobs each second, and once more for every job that has ended (9.27):
# after a hundred runs that is a sixth of a core, beside the run that is measured. Local runs need no such limit.
onstart:
    workflow.scheduler.job_rate_limiter = None
    workflow.scheduler.print_progress = ON_OTHER_MACHINES  # for say_how_it_ended, also where a profile is quiet
    end_steps_at_once()
    FLOW.start_templates()


# An executor makes the runs; what is before and after them needs the network, or is quickly done.
localrules:
    all,
    image,
    dataset,
    weights,
    prepared,
    measured,
    timings,
    fit,
    figures,
    report,


rule all:
    default_target: True
    input:
        "results/report.html",
        # The stamps are named, too: a record that was moved aside is made again even if the report exists.
        [FLOW.stamps(study) for study in STUDIES],
