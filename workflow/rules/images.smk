# Each image is built, loaded or pulled once: that of each device, and of each level of `image`. A start removes the
# description of an outdated image, so a description is made only if it is missing.


rule image:
    output:
        "results/images/{image}.json",
    log:
        "results/logs/images/{image}.log",
    localrule: True
    params:
        plan=lambda wc: f"results/{FLOW.image_study(wc.image)}/plan.json",
    shell:
        "exec python -m study image {params.plan:q} {wildcards.image} --log {log:q}"
