"""The statistics of a table of timings: values in, values out, no sentences."""
