"""A profile of Snakemake: each run is a job of Kubernetes."""
