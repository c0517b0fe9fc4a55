"""The statistics of a table of timings: values in, values and kinds of findings out, no sentences."""
