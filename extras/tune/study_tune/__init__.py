"""The verb ``tune``: find the fastest settings of a training on this machine, by runs of the
pipeline."""
