# What a run asks an executor for. Snakemake keeps it for every run, and a start on this machine asks for nothing.
RESOURCES = ("slurm_partition", "constraint", "gres", "slurm_extra", "gpu", "nodes", "tasks")
REQUESTED = {name: requested(name) for name in RESOURCES} if ON_OTHER_MACHINES else {}


# What a run waits for. A function that returns none would cost its calls: with 10,000 runs they are felt
# (`python -m benchmarks.many_plans`).
PREPARATION = known(lambda wc: FLOW.needed(wc.study, wc.run, wc.key)) if FLOW.missing else []


# One run is one process, alone on the machine: it takes every core. Every run waits for every missing preparation,
# because a run with preparing jobs of its own would break the seeded order. What exists is no input, and neither is
# the plan: Snakemake calls a job failed if an input is newer (after the clock was set back). The output is a stamp,
# because Snakemake deletes what it calls an output: a record, never. On another machine a run has the CPUs that
# `set-threads` of a profile names. An executor makes the runs alone: what is before and after them needs the network, or
# is quickly done.


rule measure:
    input:
        PREPARATION,
    output:
        "results/{study}/stamps/{run}.{key}",
    log:
        "results/logs/{study}/{run}.{key}.log",
    priority: known(lambda wc: FLOW.order(wc.study, wc.run, wc.key))
    threads: 1 if ON_OTHER_MACHINES else workflow.resource_settings.cores or 1
    resources:
        **REQUESTED,
    params:
        counter=known(lambda wc: FLOW.counter(wc.study, wc.run)),
    shell:
        "exec python -m study run results/{wildcards.study}/plan.json {wildcards.run}"
        " --counter {params.counter:q} --log {log}"
