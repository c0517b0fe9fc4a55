"""Reproducible training studies: what makes training fast on this machine, and how sure are we?

``open`` reads a results folder, or a bundle of one, and ``fit`` finds what any table of
times determines. docs/api.md describes them.

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
    from study.analysis.interface import ClaimRow, ResultsFolder, StudyResults, open
    from study.base.errors import StudyError
    from study_extras.fit.laws import Fit, fit

__version__ = "0.2.0"
__all__ = ["ClaimRow", "Fit", "ResultsFolder", "StudyError", "StudyResults", "fit", "open"]
ELSEWHERE = {"Fit": "study_extras.fit.laws", "fit": "study_extras.fit.laws"}
"""Names that the module of the results does not have. An extra is known to the core as text alone."""


def __getattr__(name: str) -> object:
    """Return a name of the public interface, which is loaded at its first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(ELSEWHERE.get(name, "study.analysis.interface")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
