# The image of each device is built, loaded or pulled once. A start removes the description of an
# outdated image, so a description is made only if it is missing.


rule image:
    output:
        "results/images/{device}.json",
    log:
        "results/logs/images/{device}.log",
    localrule: True
    params:
        plan=f"results/{STUDIES[0]}/plan.json",
    shell:
        "exec python -m study.base.step image {params.plan:q} {wildcards.device} --log {log:q}"
