"""A study on pictures of a search, as a user runs it: against a web server and a search of this machine."""

import json
import shutil
from pathlib import Path

import pytest

from study.artifacts.prepared import Manifest, read_manifest
from study.artifacts.record import Record
from tests.site import picture, serving
from tests.workflow.conftest import NO_PROXY, RECORDS, Checkout

pytestmark = pytest.mark.thorough

FOUND = """

def find(term: str, wanted: int, known: Collection[str] = ()) -> Answer:
    import json

    return Answer(list(json.loads(Path("found.json").read_text(encoding="utf-8"))[term])[:wanted])
"""
FAST = {"training.batch_size": [8]}


def record(checkout: Checkout) -> Record:
    (content,) = checkout.records().values()
    return Record.model_validate_json(content)


def manifest(checkout: Checkout) -> tuple[Path, Manifest]:
    (path,) = (checkout.root / "results" / "data").glob("search.*/manifest.json")
    return path, read_manifest(path)


def overrides(**values: object) -> str:
    return f"overrides={json.dumps(FAST | values)}"


def test_a_study_on_what_a_search_finds_and_again_on_the_same_pictures_elsewhere(checkout: Checkout) -> None:
    terms = {"oiseau é": "bird photo", "森 's": "forest photo"}
    checkout.study(
        "tiny",
        dataset={"source": "search", "terms": terms, "images": 20, "image_size": 32, "private_addresses": True},
    )
    checkout.variables = NO_PROXY
    with (checkout.root / "study" / "data" / "search" / "find.py").open("a", encoding="utf-8") as file:
        file.write("\n\nfrom pathlib import Path" + FOUND)
    with serving() as site:
        site.put("birds/odd.png", picture((900, 500), "PNG", "RGBA", seed=77))
        birds = [f"{site.address}/404.jpg", f"{site.address}/birds/odd.png", *site.pictures("birds", 12)]
        found = {"bird photo": birds, "forest photo": site.pictures("forest", 12)}
        (checkout.root / "found.json").write_text(json.dumps(found), encoding="utf-8")

        said = checkout.good(overrides())
        assert "data: search, 16 images to train and 4 to validate, 2 classes, 1 left out" in said
        path, made = manifest(checkout)
        first = record(checkout)
        assert (first.outcome, first.data and first.data.sha256) == ("ok", made.sha256)
        assert [item.reason for item in made.left_out] == ["the server answers 404 Not Found"]
        assert {item.origin.term for item in made.items if item.origin} == set(terms.values())
        assert "nothing is left to do" in checkout.good(overrides())

        kept = checkout.root / "our birds.json"
        shutil.copyfile(path, kept)
        shutil.rmtree(checkout.root / "results")
        (checkout.root / "found.json").unlink()
        again = overrides(**{"dataset.manifest": kept.name})
        lost = site.pages.pop("/birds/3.jpg")
        done = checkout.snakemake(again)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        assert done.returncode == 1
        assert len(errors) == 1
        assert "'our birds.json': 1 of 20 pictures are gone or have changed (oiseau é 1 of 10), first http" in errors[0]
        assert checkout.records() == {}

        site.pages["/birds/3.jpg"] = lost
        checkout.good(again, extra=RECORDS)
    second = record(checkout)
    assert second.settings.dataset.manifest == kept.name
    assert second.data == first.data
    assert read_manifest(kept) == manifest(checkout)[1]
