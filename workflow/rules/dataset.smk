# Data and weights are separate steps before any run. Their file names hold a key, so a file is made
# only if it is missing. The plan is a parameter, so that its time says nothing.


rule dataset:
    input:
        image=lambda wc: FLOW.step_image(FLOW.dataset_study(wc.dataset)),
    output:
        "results/data/{dataset}/manifest.json",
    log:
        "results/logs/data/{dataset}.log",
    localrule: True
    params:
        plan=lambda wc: f"results/{FLOW.dataset_study(wc.dataset)}/plan.json",
    shell:
        "exec python -m study dataset {params.plan:q} {wildcards.dataset:q} --log {log:q}"


rule weights:
    input:
        image=lambda wc: FLOW.step_image(wc.study),
    output:
        "results/{study}/weights/{weights}.json",
    log:
        "results/logs/{study}/weights/{weights}.log",
    localrule: True
    params:
        plan="results/{study}/plan.json",
    shell:
        "exec python -m study weights {params.plan:q} {wildcards.weights:q} --log {log:q}"
