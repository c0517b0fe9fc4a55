# The analysis. Each output depends only on the files that its rule names, the code of its step among them.
# `.measured` stands for the stamps, and a stamp for a record and its telemetry: it changes with them.


rule timings:
    input:
        plan="results/{study}/plan.json",
        measured="results/{study}/.measured",
        code=code("study.analysis.table.files"),
    output:
        "results/{study}/timings.csv",
    log:
        "results/logs/{study}/timings.log",
    localrule: True
    shell:
        "exec python -m study.base.step timings {input.plan:q} --records results/{wildcards.study}/records"
        " --telemetry results/{wildcards.study}/telemetry --output {output:q} --log {log:q}"


rule fit:
    input:
        plan="results/{study}/plan.json",
        timings="results/{study}/timings.csv",
        code=code("study.analysis.step"),
    output:
        "results/{study}/fit.json",
    log:
        "results/logs/{study}/fit.log",
    localrule: True
    shell:
        "exec python -m study.base.step fit {input.plan:q} {input.timings:q} --output {output:q} --log {log:q}"


rule figures:
    input:
        plan="results/{study}/plan.json",
        timings="results/{study}/timings.csv",
        fit="results/{study}/fit.json",
        measured="results/{study}/.measured",
        code=code("study.analysis.figures.step"),
    output:
        report(
            directory("results/{study}/figures"),
            patterns=["{figure}.svg"],
            caption="../report/figures.rst",
            category="{study}",
            labels=lambda wc: {"study": wc.study, "figure": figures_of(wc.study).title(wc.figure)},
        ),
    log:
        "results/logs/{study}/figures.log",
    localrule: True
    params:
        listed=lambda wc: figures_of(wc.study),
    shell:
        "exec python -m study.base.step figures {input.plan:q} {input.timings:q} {input.fit:q}"
        " --records results/{wildcards.study}/records --telemetry results/{wildcards.study}/telemetry"
        " --output {output:q} --log {log:q}"
