"""Snakemake in a process that is forked from one which has imported it."""

import importlib
import sys
import tempfile
from collections.abc import Callable

for name in ("smart_open", "snakemake.executors.local", "snakemake.report.html_reporter", "yte"):
    importlib.import_module(name)  # what each start imports beside


def start(*arguments: str) -> int:
    """Do what ``python -m study start --`` does with these arguments, and return its exit code.

    The package is imported from the folder of this process, which may hold another copy than the
    fork server's.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == "study"]:
        del sys.modules[name]
    tempfile.tempdir = None
    sys.argv = ["study", "start", "--", *arguments]
    main: Callable[[list[str]], int] = importlib.import_module("study.cli").main
    return main(sys.argv[1:])
