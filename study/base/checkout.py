"""The checkout of the project, where the package is used from one."""

from pathlib import Path

from study.base.errors import StudyError
from study.base.files import ROOT


def checkout() -> Path:
    """Return the folder of the checkout that holds this package. Raise :class:`StudyError` if none does.

    The wheel has no studies, no Dockerfile and no locks: only a checkout can plan and measure.
    """
    if not (ROOT / "Snakefile").is_file():
        raise StudyError(
            "this needs a checkout of the project (its config/, docker/ and locks), and the package is installed "
            "without one: run `python -m study` in the folder of a checkout"
        )
    return ROOT
