"""One golden file: the lines of the errors of a study, of a selection and of the rules between keys.

Other tests compare the fields of an error. After a change of words, write the file again, and read the difference:

    python -m tests.unit.config.test_golden_errors
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from study.base.errors import StudyError
from study.config.load import check_settings
from study.config.settings import with_values
from tests.conftest import study_values
from tests.unit.config.test_config import BAD_SELECTIONS, BROKEN_KEYS, plan_of
from tests.unit.config.test_rules import BROKEN

GOLDEN = Path(__file__).with_name("golden_errors.txt")
LONGEST = 200
"""Characters of a line that are compared: a list of all keys is no subject here."""


def line_of(folder: Path, config: dict[str, Any]) -> str:
    try:
        plan_of(folder, study_values(), **config)
    except StudyError as error:
        return str(error)
    raise AssertionError(f"no error: {config}")


def lines(folder: Path) -> Iterator[str]:
    for _, overrides in BROKEN_KEYS:
        yield line_of(folder, {"overrides": overrides})
    for _, config in BAD_SELECTIONS:
        yield line_of(folder, config)
    for _, changes in BROKEN:
        try:
            check_settings(with_values({}, changes), "study x")
        except StudyError as error:
            yield str(error)


def shortened(folder: Path) -> str:
    found = (line if len(line) <= LONGEST else f"{line[:LONGEST]}..." for line in lines(folder))
    return "".join(f"{line}\n" for line in sorted(set(found)))


def test_the_errors_say_what_the_golden_file_says(tmp_path: Path) -> None:
    assert shortened(tmp_path).splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        GOLDEN.write_text(shortened(Path(folder)), encoding="utf-8")
