# The analysis of each study, and one page about every selected one. Each is outdated where it is not made of the plan,
# the blocks and the code that are there; no time of theirs counts. A step that fails leaves what was there before.


rule analyse:
    input:
        blocks,
        planned_by(lambda wc: wc.study, "results/{study}/fit.json"),
    output:
        update("results/{study}/timings.csv"),
        update("results/{study}/epochs.csv"),
        update("results/{study}/fit.json"),
        report(
            update(directory("results/{study}/figures")),
            patterns=["{figure}.svg"],
            caption="../report/figures.rst",
            category="{study}",
            labels={"study": "{study}", "figure": "{figure}"},
        ),
    log:
        "results/logs/{study}/analyse.log",
    localrule: True
    conda:
        "../envs/study.yaml"
    shell:
        "exec python -m study analyse {wildcards.study:q} --log {log:q}"


rule report:
    input:
        [planned_by(lambda wc, name=study: name, "results/report.html") for study in FLOW.studies],
        timings=ancient(expand("results/{study}/timings.csv", study=FLOW.studies)),
        epochs=ancient(expand("results/{study}/epochs.csv", study=FLOW.studies)),
        fits=ancient(expand("results/{study}/fit.json", study=FLOW.studies)),
        figures=ancient(expand("results/{study}/figures", study=FLOW.studies)),
    output:
        report(
            update("results/report.html"),
            caption="../report/page.rst",
            category="report",
            labels={"study": ", ".join(FLOW.studies), "figure": "the whole page"},
        ),
    log:
        "results/logs/report.log",
    localrule: True
    conda:
        "../envs/study.yaml"
    params:
        studies=FLOW.studies,
    shell:
        "exec python -m study report --from-tables {params.studies:q} --output {output:q} --log {log:q}"


# The blog's figures under its own names, of these results: snakemake --cores 1 blog_figures
rule blog_figures:
    input:
        expand("results/{study}/fit.json", study=FLOW.studies),
    output:
        directory("results/blog"),
    log:
        "results/logs/blog.log",
    localrule: True
    conda:
        "../envs/study.yaml"
    shell:
        "python -m replications.gpu_blog.figures results {output:q} 2>&1 | tee {log:q}"


# Only asked for where a device that the start names measures nothing: the page is made, and the start ends with an error.
rule devices:
    input:
        ancient("results/report.html"),
    output:
        "results/devices",
    log:
        "results/logs/devices.log",
    localrule: True
    conda:
        "../envs/study.yaml"
    params:
        error=FLOW.unmeasured,
    shell:
        "echo {params.error:q} | tee {log:q} >&2; exit 1"
