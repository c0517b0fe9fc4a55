"""A study on pictures of a search, as a user makes it: against a web server and a search of this machine."""

import json
from pathlib import Path

import pytest

from study.artifacts.record import Record
from tests.extras.search.site import picture, serving
from tests.workflow.conftest import NO_PROXY, Checkout, copy_checkout

pytestmark = pytest.mark.thorough

FOUND = """

from pathlib import Path


def find(term: str, wanted: int, known: Collection[str] = ()) -> Answer:
    import json

    return Answer(list(json.loads(Path("found.json").read_text(encoding="utf-8"))[term])[:wanted])
"""
TERMS = {"oiseau é": "bird photo", "森 's": "forest photo"}


def record(checkout: Checkout) -> Record:
    (content,) = checkout.records().values()
    return Record.model_validate_json(content)


@pytest.mark.timeout(900)
def test_a_study_on_what_a_search_finds(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path / "a copy")
    checkout.variables = NO_PROXY
    with (checkout.root / "study_extras" / "search" / "find.py").open("a", encoding="utf-8") as file:
        file.write(FOUND)
    with serving() as site:
        site.put("birds/odd.png", picture((900, 500), "PNG", "RGBA", seed=77))
        birds = [f"{site.address}/404.jpg", f"{site.address}/birds/odd.png", *site.pictures("birds", 12)]
        found = {"bird photo": birds, "forest photo": site.pictures("forest", 12)}
        (checkout.root / "found.json").write_text(json.dumps(found), encoding="utf-8")
        terms = [f"{label}={term}" for label, term in TERMS.items()]
        search = ["search", *terms, "--images", "20", "--output", "our pictures", "--private-addresses"]
        done = checkout.python("study", *search)
    assert done.returncode == 0, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("the pictures: our pictures: 20 of 2 classes, 1 left out; a study takes them with ")
    checkout.study("tiny", dataset={"source": "folder", "path": "our pictures", "image_size": 32})
    said = checkout.good("overrides={training.batch_size: [8]}")
    assert "data: folder, 16 images to train and 4 to validate, 2 classes" in said
    assert record(checkout).outcome == "ok"
