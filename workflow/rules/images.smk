# The image of each device: built, loaded or pulled once. A start forgets the description of an image
# that is not the one wanted now, so a missing file is the only reason to make one.


rule image:
    input:
        plan=ancient(f"results/{STUDIES[0]}/plan.json"),
    output:
        "results/images/{device}.json",
    log:
        "results/logs/images/{device}.log",
    shell:
        "exec python -m study image {input.plan:q} {wildcards.device} --log {log:q}"
