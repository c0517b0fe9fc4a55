"""The committed example as a results folder. A test that changes it works on a copy."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from study.analysis.analysis import StudyResult, result_of
from study.artifacts.layout import Results
from study.base.files import ROOT

_UNPACKED = TemporaryDirectory(prefix="example-")
with ZipFile(ROOT / "docs" / "example" / "results.zip") as _bundle:
    _bundle.extractall(_UNPACKED.name)

EXAMPLE = Path(_UNPACKED.name)
"""The results folder of the example: its bundle, unpacked once a process."""
STUDIES = ("photographs", "photographs-speedup", "photographs-switches")
"""The studies of the example, in their order."""


@cache
def example(study: str) -> StudyResult:
    """What the records of a study of the example give, computed once a process. It is not changed."""
    return result_of(Results(EXAMPLE), study)


for _study in STUDIES:  # the bundle's own analysis is that of another version
    Results(EXAMPLE).fit(_study).write_text(example(_study).analysis.model_dump_json(), encoding="utf-8")
