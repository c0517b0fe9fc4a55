# The analysis. Each output depends only on the plan and on the records that it names.


rule timings:
    input:
        plan="results/{study}/plan.json",
        records=lambda wc: FLOW.records(wc.study),
        code=code("analysis/table/*.py"),
    output:
        "results/{study}/timings.csv",
    log:
        "results/logs/{study}/timings.log",
    shell:
        "exec python -m study timings {input.plan:q} --records results/{wildcards.study}/records"
        " --output {output:q} --log {log:q}"


rule fit:
    input:
        plan="results/{study}/plan.json",
        timings="results/{study}/timings.csv",
        code=code("analysis/stats/*.py", "analysis/words.py"),
    output:
        "results/{study}/fit.json",
    log:
        "results/logs/{study}/fit.log",
    shell:
        "exec python -m study fit {input.plan:q} {input.timings:q} --output {output:q} --log {log:q}"


rule figures:
    input:
        plan="results/{study}/plan.json",
        timings="results/{study}/timings.csv",
        fit="results/{study}/fit.json",
        code=code("analysis/figures/*.py", "analysis/published/*"),
    output:
        report(
            directory("results/{study}/figures"),
            patterns=["{figure}.svg"],
            caption="../report/figures.rst",
            category="{study}",
        ),
    log:
        "results/logs/{study}/figures.log",
    shell:
        "exec python -m study figures {input.plan:q} {input.timings:q} {input.fit:q} --output {output:q} --log {log:q}"
