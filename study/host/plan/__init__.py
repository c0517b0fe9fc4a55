"""From a selection to the runs of each study, and what Snakemake asks about them."""
