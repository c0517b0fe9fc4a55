# A start on this machine asks for nothing.
RESOURCES = (
    "slurm_partition constraint gres slurm_extra gpu nodes tasks mem_mb runtime".split()
    if ON_OTHER_MACHINES
    else ()
)


checkpoint length:
    input:
        lambda wc: ancient(FLOW.preparation(wc.study)),
    output:
        "results/{study}/length.json",
    log:
        "results/logs/{study}/length.log",
    conda:
        STACK
    threads: EVERY_CORE
    shell:
        "exec python -m study length {wildcards.study} --log {log:q}"


# One block is one process, alone on the machine: it takes every core. The output is an index of the block's records,
# because Snakemake deletes what it calls an output: a record, never.
rule measure:
    input:
        lambda wc: ancient(FLOW.preparation(wc.study, wc.block)),
    output:
        "results/{study}/blocks/{block}.json",
    log:
        "results/logs/{study}/block-{block}.log",
    priority: lambda wc: FLOW.order(wc.study, wc.block)
    conda:
        STACK
    threads: EVERY_CORE
    resources:
        **{name: requested(name) for name in RESOURCES},
    params:
        # Derived from the input, no reason for another block.
        told=lambda wc, input: FLOW.told(wc.study, wc.block),
    message:
        "{params.told}"
    shell:
        "exec python -m study measure {wildcards.study} {wildcards.block} --log {log:q}"
