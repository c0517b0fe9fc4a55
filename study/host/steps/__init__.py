"""The steps of the pipeline on the host: data, weights, and one run."""
