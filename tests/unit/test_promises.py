"""Each promise of the documents names tests that are there."""

import re

from tests.conftest import ROOT


def test_every_promise_has_a_test_that_holds_it() -> None:
    rows = re.findall(
        r"^\| (.+) \| (`(?:tests|extras)/.+) \|$",
        (ROOT / "docs/promises.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(rows) > 20
    for promise, named in rows:
        file = ""
        for test in re.findall(r"`([^`]+)`", named):
            file, name = test.split("::") if "::" in test else (file, test)
            assert f"def {name}(" in (ROOT / file).read_text("utf-8"), (promise, test)
