# One page about every selected study.


rule report:
    input:
        selection="results/plan.json",
        timings=expand("results/{study}/timings.csv", study=STUDIES),
        fits=expand("results/{study}/fit.json", study=STUDIES),
        figures=expand("results/{study}/figures", study=STUDIES),
        plans=expand("results/{study}/plan.json", study=STUDIES),
        stamps=[FLOW.stamps(study) for study in STUDIES],
        code=code("study.analysis.report.step"),
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    params:
        studies=STUDIES,
    shell:
        "exec python -m study report {params.studies:q} --output {output:q} --log {log:q}"
