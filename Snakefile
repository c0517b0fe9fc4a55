# From a study file to results/report.html: snakemake --cores 1
#
# config/studies/*.yaml -> plan -> dataset, weights -> runs -> timings -> fit -> figures -> report

from snakemake.utils import min_version

min_version("9.0")


configfile: workflow.source_path("config/config.yaml")


# With --sdm apptainer Snakemake would use it; the runs' own containers are study/container.py's.
container: None


include: "workflow/rules/common.smk"
include: "workflow/rules/dataset.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        "results/report.html",
