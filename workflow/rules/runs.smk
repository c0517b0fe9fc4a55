# One run is one process, alone on the machine: it takes every core. Every preparation is an input of
# every run, because a run with preparing jobs of its own would break the seeded order. A run with a
# record has no inputs, because Snakemake ignores `ancient` for a file that is still to be made.
# `update` keeps Snakemake from deleting a record, whatever it is told to make again.


rule measure:
    input:
        plan=ancient("results/{study}/plan.json"),
        preparation=lambda wc: [ancient(path) for path in FLOW.needed(wc.study, wc.run, wc.key)],
    output:
        update("results/{study}/records/{run}.{key}.json"),
    log:
        "results/logs/{study}/{run}.{key}.log",
    priority: lambda wc: FLOW.order(wc.study, wc.run, wc.key)
    threads: workflow.cores
    params:
        session=lambda wc: FLOW.sessions[wc.study],
        counter=lambda wc: FLOW.counter(wc.study, wc.run),
    shell:
        "exec python -m study run {input.plan:q} {wildcards.run:q} --session {params.session}"
        " --counter {params.counter:q} --log {log:q}"
