# One page about every selected study.


rule report:
    input:
        selection="results/plan.json",
        timings=expand("results/{study}/timings.csv", study=STUDIES),
        fits=expand("results/{study}/fit.json", study=STUDIES),
        figures=expand("results/{study}/figures", study=STUDIES),
        plans=expand("results/{study}/plan.json", study=STUDIES),
        code=CODE,
    output:
        report(
            "results/report.html",
            caption="../report/page.rst",
            category="report",
            labels={"study": ", ".join(STUDIES), "figure": "the whole page"},
        ),
    log:
        "results/logs/report.log",
    localrule: True
    params:
        studies=STUDIES,
    shell:
        "exec python -m study report --from-tables {params.studies:q} --output {output:q} --log {log:q}"
