# One page about every selected study.


rule report:
    input:
        selection="results/plan.json",
        timings=expand("results/{study}/timings.csv", study=STUDIES),
        fits=expand("results/{study}/fit.json", study=STUDIES),
        figures=expand("results/{study}/figures", study=STUDIES),
        code=code("analysis/report/*.py", "analysis/report/templates/*"),
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    params:
        studies=STUDIES,
    shell:
        "exec python -m study report {params.studies:q} --output {output:q} --log {log:q}"
