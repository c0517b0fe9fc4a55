# The analysis of a study depends only on the files that its rule names, the code of the analysis among them. A stamp
# stands for a record and its telemetry: it changes with them.


rule analyse:
    input:
        plan="results/{study}/plan.json",
        stamps=lambda wc: FLOW.stamps(wc.study),
        code=CODE,
    output:
        "results/{study}/timings.csv",
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
