"""A start looks at the places that it will write, before anything is measured."""

import os
import re
from pathlib import Path

import pytest

from study.artifacts.layout import Results
from study.base.errors import StudyError
from study.host.plan.checks import check_places
from tests.conftest import tiny_plan

PLAN = tiny_plan()
HERE = Results()
FOLDERS = [HERE.hub, Path("results/data"), HERE.log(PLAN.name, "a").parent, HERE.telemetry_folder(PLAN.name)]
FILES = [HERE.telemetry(PLAN.name, PLAN.runs[0].file), HERE.record(PLAN.name, PLAN.runs[0].file), HERE.report]


@pytest.mark.parametrize("place", [*FOLDERS, *FILES], ids=str)
def test_a_place_with_something_else_in_it_is_named_before_the_start(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_places(PLAN, HERE)
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    kind = "folder" if place in FOLDERS else "file"
    with pytest.raises(StudyError, match=f"^{re.escape(str(place))}: it is no {kind}: move it away$"):
        check_places(PLAN, HERE)
