# What a block asks an executor for. A start on this machine asks for nothing.
RESOURCES = (
    ("slurm_partition", "constraint", "gres", "slurm_extra", "gpu", "nodes", "tasks")
    if ON_OTHER_MACHINES
    else ()
)


# A ladder's rung is chosen once.
checkpoint length:
    input:
        FLOW.missing,
    output:
        "results/{study}/length.json",
    log:
        "results/logs/{study}/length.log",
    threads: 1 if ON_OTHER_MACHINES else workflow.resource_settings.cores or 1
    shell:
        "exec python -m study length {wildcards.study} --log {log:q}"


# One block is one process, alone on the machine: it takes every core. Only preparation that is missing is an input: what
# exists has no time that counts. The output is an index of the block's records, because Snakemake deletes what it calls
# an output: a record, never. On another machine a block has the CPUs that `set-threads` of a profile names.
rule measure:
    input:
        lambda wc: FLOW.needed(wc.study, wc.block),
    output:
        "results/{study}/blocks/{block}.json",
    log:
        "results/logs/{study}/block-{block}.log",
    priority: lambda wc: FLOW.order(wc.study, wc.block)
    threads: 1 if ON_OTHER_MACHINES else workflow.resource_settings.cores or 1
    resources:
        **{name: requested(name) for name in RESOURCES},
    params:
        # Derived from the input, no reason for another block.
        told=lambda wc, input: FLOW.told(wc.study, wc.block),
    message:
        "{params.told}"
    shell:
        "exec python -m study measure {wildcards.study} {wildcards.block} --log {log:q}"
