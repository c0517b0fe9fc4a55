"""The steps of the pipeline on the host: images, environments, data, weights, and the runs
of a block."""
