"""Reproducible training studies: what makes training fast on this machine, and how sure are we?

``open`` reads a results folder, or a bundle of one. An extra adds a function of its name: ``fit``
finds what any table of times determines. docs/api.md describes them.

>>> import study
>>> results = study.open("docs/example/results.zip")
>>> results["photographs"].analysis().groups[0].best
'32'
>>> times = results["photographs"].timings()
>>> fastai = times[(times["training.loop"] == "fastai") & times["excluded"].isna()]
>>> how = {"block": "block", "session": "session", "pool": ["warmed_up"]}
>>> fit = study.fit(fastai, x="training.batch_size", y="fit_seconds", **how)
>>> fit.curve.observations
25
"""

import sys

if sys.argv[:1] == ["-m"]:  # which puts the user's folder first
    from study.base import python_first

    python_first()

TYPE_CHECKING = False  # typing's own is not imported: it would take longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    from study.analysis.interface import (
        Claim,
        ClaimRow,
        ResultsFolder,
        StudyResults,
        claims_in,
        open,
    )
    from study.base import plain_matplotlib
    from study.base.errors import StudyError

__version__ = "0.3.0"
__all__ = [
    "Claim",
    "ClaimRow",
    "ResultsFolder",
    "StudyError",
    "StudyResults",
    "claims_in",
    "open",
    "plain_matplotlib",
]


def __getattr__(name: str) -> "Any":
    """Return a name of the public interface, which is loaded at its first use: of the core, or of
    an extra."""
    from importlib import import_module

    if name in __all__:
        home = "study.base" if name == "plain_matplotlib" else "study.analysis.interface"
        return getattr(import_module(home), name)
    if name[:1] != "_":
        from study.base.extras import extras_with, load_extra

        if name in extras_with("__init__") and hasattr(load_extra(name), name):
            return getattr(load_extra(name), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
