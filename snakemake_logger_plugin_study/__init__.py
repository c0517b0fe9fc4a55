"""The logger plugin that Snakemake finds by the name of this package: ``--logger study``."""

from study.host.plan.terminal import LogHandler

__all__ = ["LogHandler"]
