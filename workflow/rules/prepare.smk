# What runs need is prepared before any of them: the priority of each of these is above that of every block. Their file
# names hold a key, so a file is made only if it is missing. The plan is a parameter, so that its time says nothing.


# Each image is built, loaded or pulled once: that of each device, and of each level of `image`. A start removes the
# description of an outdated image.
rule image:
    output:
        "results/images/{image}.json",
    log:
        "results/logs/images/{image}.log",
    priority: FLOW.first
    localrule: True
    params:
        plan=lambda wc: f"results/{FLOW.study_with(wc.image)}/plan.json",
    shell:
        "exec python -m study image {params.plan:q} {wildcards.image} --log {log:q}"


# An environment of packages is made once from each lock that is a level of `environment`.
rule environment:
    output:
        "results/environments/{environment}.json",
    log:
        "results/logs/environments/{environment}.log",
    priority: FLOW.first
    localrule: True
    params:
        plan=lambda wc: f"results/{FLOW.study_with(wc.environment)}/plan.json",
    shell:
        "exec python -m study environment {params.plan:q} {wildcards.environment} --log {log:q}"


rule dataset:
    input:
        image=lambda wc: FLOW.step_image(FLOW.dataset_study(wc.dataset)),
    output:
        "results/data/{dataset}/manifest.json",
    log:
        "results/logs/data/{dataset}.log",
    priority: FLOW.first
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
    priority: FLOW.first
    localrule: True
    params:
        plan="results/{study}/plan.json",
    shell:
        "exec python -m study weights {params.plan:q} {wildcards.weights:q} --log {log:q}"
