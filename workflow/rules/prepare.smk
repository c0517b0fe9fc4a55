# What follows has a plan as an input, which counts where it is outdated.
rule plan:
    output:
        update(FLOW.plan_files),
    log:
        "results/logs/plan.log",
    conda:
        STACK
    params:
        request=lambda wc: FLOW.request.model_dump_json(),
        told=lambda wc: FLOW.foretold(),
    message:
        "{params.told}"
    shell:
        "exec python -m study begin {params.request:q} --log {log:q}"


# What runs need comes before any of them, by its priority; its names hold a key.
rule image:
    input:
        plan=planned_by(lambda wc: FLOW.study_with(wc.image), "results/images/{image}.json"),
    output:
        "results/images/{image}.json",
    log:
        "results/logs/images/{image}.log",
    priority: FLOW.first
    conda:
        STACK
    shell:
        "exec python -m study image {input.plan:q} {wildcards.image} --log {log:q}"


rule environment:
    input:
        plan=planned_by(
            lambda wc: FLOW.study_with(wc.environment), "results/environments/{environment}.json"
        ),
    output:
        "results/environments/{environment}.json",
    log:
        "results/logs/environments/{environment}.log",
    priority: FLOW.first
    conda:
        STACK
    shell:
        "exec python -m study environment {input.plan:q} {wildcards.environment} --log {log:q}"


rule dataset:
    input:
        plan=planned_by(
            lambda wc: FLOW.dataset_study(wc.dataset), "results/data/{dataset}/manifest.json"
        ),
        image=lambda wc: ancient(FLOW.step_image(FLOW.dataset_study(wc.dataset))),
    output:
        "results/data/{dataset}/manifest.json",
    log:
        "results/logs/data/{dataset}.log",
    priority: FLOW.first
    conda:
        STACK
    shell:
        "exec python -m study dataset {input.plan:q} {wildcards.dataset:q} --log {log:q}"


rule weights:
    input:
        plan=planned_by(lambda wc: wc.study, "results/{study}/weights/{weights}.json"),
        image=lambda wc: ancient(FLOW.step_image(wc.study)),
    output:
        "results/{study}/weights/{weights}.json",
    log:
        "results/logs/{study}/weights/{weights}.log",
    priority: FLOW.first
    conda:
        STACK
    shell:
        "exec python -m study weights {input.plan:q} {wildcards.weights:q} --log {log:q}"
