"""SLURM: what a run asks for, and what it was given."""
