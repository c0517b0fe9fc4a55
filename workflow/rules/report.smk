# The analysis of each study, and one page about every selected one. A start removes what is not made of the plan, the
# blocks and the code that are there: no time of theirs counts.


rule analyse:
    input:
        blocks,
    output:
        "results/{study}/timings.csv",
        "results/{study}/epochs.csv",
        "results/{study}/fit.json",
        report(
            directory("results/{study}/figures"),
            patterns=["{figure}.svg"],
            caption="../report/figures.rst",
            category="{study}",
            labels={"study": "{study}", "figure": "{figure}"},
        ),
    log:
        "results/logs/{study}/analyse.log",
    localrule: True
    shell:
        "exec python -m study analyse {wildcards.study:q} --log {log:q}"


rule report:
    input:
        timings=expand("results/{study}/timings.csv", study=FLOW.studies),
        epochs=expand("results/{study}/epochs.csv", study=FLOW.studies),
        fits=expand("results/{study}/fit.json", study=FLOW.studies),
        figures=expand("results/{study}/figures", study=FLOW.studies),
    output:
        report(
            "results/report.html",
            caption="../report/page.rst",
            category="report",
            labels={"study": ", ".join(FLOW.studies), "figure": "the whole page"},
        ),
    log:
        "results/logs/report.log",
    localrule: True
    params:
        studies=FLOW.studies,
    shell:
        "exec python -m study report --from-tables {params.studies:q} --output {output:q} --log {log:q}"
