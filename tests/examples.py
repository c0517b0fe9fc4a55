"""The committed example as a results folder, unpacked once for all workers. A test that changes it
works on a copy."""

from pathlib import Path

from filelock import FileLock

from study.analysis.analysis import result_of
from study.analysis.table.tables import write_csv
from study.artifacts.bundle import unpack
from study.artifacts.layout import Results
from study.base.files import ROOT, write_whole
from tests.conftest import SHARED

EXAMPLE = SHARED / "example"
"""The results folder of the example, from its bundle: it holds no analysis."""
STUDIES = ("photographs", "photographs-speedup", "photographs-switches")
"""The studies of the example, in their order."""


def with_analysis(*studies: str) -> Path:
    """The example's folder, in which these studies (by default all) have the table and the analysis
    of their records.

    They are made once in a session: each takes seconds.
    """
    files = Results(EXAMPLE)
    for study in studies or STUDIES:
        with FileLock(SHARED / f"{study}.lock"):
            if not files.fit(study).exists():
                found = result_of(files, study)
                write_csv(found.frame, files.timings(study))
                found.epochs.to_csv(files.epochs(study), index=False)
                write_whole(files.fit(study), found.analysis.model_dump_json(indent=1))
    return EXAMPLE


SHARED.mkdir(exist_ok=True)
with FileLock(SHARED / "example.lock"):
    if not EXAMPLE.exists():
        unpack(ROOT / "docs" / "example" / "results.zip", EXAMPLE)
