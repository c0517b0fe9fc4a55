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
    conda:
        STACK
    shell:
        "exec python -m study analyse {wildcards.study:q} --log {log:q}"


rule report:
    input:
        planned_by(lambda wc: FLOW.studies[0], "results/report.html"),
        ancient(FLOW.analyses),
    output:
        report(
            update("results/report.html"),
            caption="../report/page.rst",
            category="report",
            labels={"study": ", ".join(FLOW.studies), "figure": "the whole page"},
        ),
    log:
        "results/logs/report.log",
    conda:
        STACK
    params:
        studies=FLOW.studies,
    shell:
        "exec python -m study report --from-tables {params.studies:q} --output {output:q} --log {log:q}"


rule blog_figures:
    input:
        FLOW.analyses,
    output:
        directory("results/blog"),
    log:
        "results/logs/blog.log",
    conda:
        STACK
    shell:
        "python -m replications.gpu_blog.figures results {output:q} 2>&1 | tee {log:q}"


# Asked for where a device that the start names measures nothing: it fails, once the page is made.
rule devices:
    input:
        ancient("results/report.html"),
    output:
        "results/devices",
    log:
        "results/logs/devices.log",
    conda:
        STACK
    params:
        error=FLOW.unmeasured,
    shell:
        "echo {params.error:q} | tee {log:q} >&2; exit 1"
