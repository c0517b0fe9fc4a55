# From a study file to results/report.html: snakemake --cores 1
#
# config/studies/*.yaml -> plan -> dataset, weights -> runs -> timings -> fit -> figures -> report

from snakemake.utils import min_version

min_version("9.0")


configfile: f"{workflow.basedir}/config/config.yaml"


# The base that docker/Dockerfile builds on, named here for Snakemake's linter. Snakemake itself can
# only use Apptainer; the runs' own containers are the business of study/host/engine/container.py.
container: "docker://python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b"


include: "workflow/rules/common.smk"
include: "workflow/rules/images.smk"
include: "workflow/rules/dataset.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        "results/report.html",
        # Named here as well: a record that was moved aside is made again although the report is there.
        [FLOW.records(study) for study in STUDIES],
