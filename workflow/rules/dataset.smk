# Data and weights are separate steps before any run. Their file names hold a key, so a file is made
# only if it is missing.


rule dataset:
    input:
        plan=lambda wc: ancient(f"results/{FLOW.dataset_study(wc.dataset)}/plan.json"),
        image=lambda wc: [ancient(path) for path in FLOW.step_image(FLOW.dataset_study(wc.dataset))],
    output:
        "results/data/{dataset}/manifest.json",
    log:
        "results/logs/data/{dataset}.log",
    shell:
        "exec python -m study dataset {input.plan:q} {wildcards.dataset:q} --log {log:q}"


rule weights:
    input:
        plan=ancient("results/{study}/plan.json"),
        image=lambda wc: [ancient(path) for path in FLOW.step_image(wc.study)],
    output:
        "results/{study}/weights/{weights}.json",
    log:
        "results/logs/{study}/weights/{weights}.log",
    shell:
        "exec python -m study weights {input.plan:q} {wildcards.weights:q} --log {log:q}"
