import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from PIL import Image

from study.artifacts.prepared import Manifest, read_manifest
from study.base.errors import StudyError
from study.config.sections import Dataset
from study.data.decode import MAX_PIXELS, decode
from study.data.search import fetch as search_fetch
from study.data.search.find import Answer
from study.data.search.picture import shrink
from study.data.search.store import Store
from study.data.search.web import Bounds
from study.data.sources import open_set
from tests.site import Request, Site, drip, picture, redirect, serving

BOUNDS = Bounds(bytes=100_000, seconds=10)
TERMS = {"bird": "bird photo", "forêt": "forest photo"}


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as site:
        yield site


class Search(Protocol):
    """Set what is found for each term, and why the search breaks off after it; returns the list of what is asked."""

    def __call__(self, found: dict[str, list[str]], trouble: str | None = None) -> list[tuple[str, int]]: ...


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Search:
    """Let the search find what a test says; what was asked is listed."""
    asked: list[tuple[str, int]] = []

    def answer(found: dict[str, list[str]], trouble: str | None = None) -> list[tuple[str, int]]:
        def find(term: str, wanted: int, known: Sequence[str]) -> Answer:
            asked.append((term, wanted))
            return Answer(found[term][:wanted], trouble)

        monkeypatch.setattr(search_fetch, "find", find)
        return asked

    return answer


def dataset(**values: Any) -> Dataset:
    base = {"source": "search", "terms": TERMS, "images": 8, "image_size": 32, "private_addresses": True}
    return Dataset.model_validate(base | values)


def fetch(results: Path, wanted: Dataset, **options: Any) -> Manifest:
    """What the dataset step does, and leaves."""
    folder = results / "data" / "search.12345678"
    manifest = search_fetch.fetch(wanted, folder, results, **({"bounds": BOUNDS} | options))
    (folder / "manifest.json").write_text(manifest.model_dump_json(indent=1), encoding="utf-8")
    return manifest


def urls(site: Site, count: int = 4) -> dict[str, list[str]]:
    return {"bird photo": site.pictures("bird", count), "forest photo": site.pictures("forest", count)}


def test_a_search_leaves_verified_pictures_by_class_with_url_term_and_both_checksums(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    found = urls(site)
    searches(found)
    wanted = dataset()
    manifest = fetch(tmp_path, wanted)
    assert (manifest.source, manifest.classes, manifest.left_out) == ("search", ["bird", "forêt"], [])
    assert (manifest.train_images, manifest.valid_images) == (6, 2)
    for item in manifest.items:
        assert item.origin is not None
        assert item.origin.term == TERMS[str(item.label)]
        assert item.origin.url in found[item.origin.term]
        assert item.origin.bytes == len(site.pages[item.origin.url.removeprefix(site.address)])  # type: ignore[arg-type]
        assert item.name == f"{item.label}/{item.origin.sha256[:16]}.jpg"
    folder = tmp_path / "data" / "search.12345678"
    images = open_set(read_manifest(folder / "manifest.json"), wanted, folder, tmp_path)
    assert all(decode(path, 3, 40).std() > 10 for path in images.stored)
    assert len(images.train) == 6


@pytest.mark.parametrize(
    "save",
    [
        {"kind": "PNG"}, {"kind": "WEBP"}, {"kind": "GIF"}, {"kind": "BMP"}, {"mode": "L"}, {"mode": "CMYK"},
        {"kind": "PNG", "mode": "RGBA"}, {"kind": "PNG", "mode": "P"}, {"kind": "TIFF", "mode": "I;16"},
    ],
)  # fmt: skip
def test_every_kind_of_picture_is_stored_as_a_colour_jpeg_of_the_size_that_is_asked_for(save: dict[str, str]) -> None:
    mode = save.pop("mode", "RGB")
    given = picture((900, 600), mode="RGB" if mode == "I;16" else mode, **save)  # type: ignore[arg-type]
    if mode == "I;16":
        content = io.BytesIO()
        Image.fromarray(np.arange(900 * 600, dtype=np.uint16).reshape(600, 900)).save(content, "PNG")
        given = content.getvalue()
    stored = Image.open(io.BytesIO(shrink(given, 400)))
    assert (stored.format, stored.mode, stored.size) == ("JPEG", "RGB", (400, 266))
    assert Image.open(io.BytesIO(shrink(picture((60, 50)), 400))).size == (60, 50)


def test_a_rotation_is_applied_and_nothing_of_the_camera_is_kept() -> None:
    """Both loops then see the picture upright: stock fastai passes over what EXIF data say."""
    halves = np.zeros((60, 120, 3), np.uint8)
    halves[:, :60] = 255  # white on the left; turned by 90 degrees clockwise: white on top
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "a camera"
    content = io.BytesIO()
    Image.fromarray(halves).save(content, "JPEG", exif=exif, comment=b"me")
    stored = Image.open(io.BytesIO(shrink(content.getvalue(), 400)))
    pixels = np.asarray(stored)
    assert stored.size == (60, 120)
    assert pixels[:20].mean() > 200 > 50 > pixels[-20:].mean()
    assert not stored.getexif()
    assert "comment" not in stored.info


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: b"<html>not found</html>", "it is not a picture"),
        (lambda: b"", "it is not a picture"),
        (lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 99 99\n", "it is not a picture"),
        (lambda: picture((400, 300))[:-2000], "it cannot be decoded: image file is truncated"),
        (lambda: picture((1, 1), "GIF"), "it is 1 x 1 pixels, but each side needs at least 32"),
        (lambda: picture((10_000, 6501), "PNG", "1"), f"more than {MAX_PIXELS // 1_000_000} million"),
    ],
    ids=["a page", "nothing", "PostScript", "half of a JPEG", "one pixel", "65 million pixels"],
)
def test_what_is_no_picture_is_refused_with_the_reason(given: Callable[[], bytes], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        shrink(given(), 400)
    assert words in str(caught.value)


def test_what_cannot_be_used_is_left_out_with_the_reason_and_the_next_one_takes_its_place(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    good, forest = urls(site, 6).values()
    whole = picture((400, 300), seed=5)
    bad = {
        "huge.jpg": site.put("huge.jpg", b"\xff" * 200_000),
        "page.jpg": site.put("page.jpg", lambda request: request.send(b"<html>", "text/html")),
        "lies.jpg": site.put("lies.jpg", b"<html>"),
        "gone.jpg": f"{site.address}/gone.jpg",
        "loop.jpg": site.put("loop.jpg", redirect("/loop.jpg")),
        "cut.jpg": site.put("cut.jpg", whole[:-1000]),
        "twice.jpg": site.put("twice.jpg", site.pages["/bird/0.jpg"]),
    }
    searches({"bird photo": [good[0], *bad.values(), *good[1:]], "forest photo": [good[1], *forest]})
    manifest = fetch(tmp_path, dataset())
    reasons = {item.name.rsplit("/", 1)[-1]: item.reason for item in manifest.left_out[:-1]}
    assert reasons.pop("cut.jpg").startswith("it cannot be decoded: image file is truncated")
    assert reasons == {
        "huge.jpg": "it has more than 100000 bytes",
        "page.jpg": "its content type is 'text/html', which is not that of an image",
        "lies.jpg": "it is not a picture (JPEG, PNG, WEBP, GIF, BMP, TIFF)",
        "gone.jpg": "the server answers 404 Not Found",
        "loop.jpg": "it redirects more than 5 times",
        "twice.jpg": f"it is the same picture as {good[0]}",
    }
    both = manifest.left_out[-1]
    assert (both.name, both.reason) == (good[1], f"it is the same picture as {good[1]}")  # a bird for the first term
    assert [str(item.label) for item in manifest.items] == ["bird"] * 4 + ["forêt"] * 4
    assert site.requests["/bird/4.jpg"] == 0  # no more than are wanted


def test_an_interrupted_search_goes_on_and_fetches_nothing_verified_again(
    site: Site, searches: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = searches(urls(site, 10))
    kept = 0
    keep = Store.keep

    def dies(self: Store, url: str, content: bytes) -> Any:
        nonlocal kept
        kept += 1
        if kept > 5:
            raise KeyboardInterrupt
        return keep(self, url, content)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Store, "keep", dies)
        fetch(tmp_path, dataset(images=20))
    before = site.requests.copy()
    manifest = fetch(tmp_path, dataset(images=20))
    assert len(manifest.items) == 20
    assert [term for term, _ in asked] == ["bird photo", "forest photo"]  # once each
    again = site.requests - before
    assert sum(again.values()) == 20 - 5
    assert fetch(tmp_path, dataset(images=20)) == manifest
    assert site.requests == before + again


def test_another_split_or_more_pictures_are_of_the_same_search(site: Site, searches: Search, tmp_path: Path) -> None:
    """A factor such as dataset.seed compares splits, and no two searches."""
    found = urls(site, 40)
    late = site.pages.pop("/bird/1.jpg")
    searches(found)
    first = fetch(tmp_path, dataset())
    site.pages["/bird/1.jpg"] = late  # what was refused stays so, or the levels were of other pictures
    searches({"bird photo": site.pictures("other", 40), "forest photo": site.pictures("others", 40)})
    split = fetch(tmp_path, dataset(seed=7, valid_fraction=0.5))
    more = fetch(tmp_path, dataset(images=40))
    names = {item.name for item in first.items}
    assert {item.name for item in split.items} == names
    assert names < {item.name for item in more.items}
    assert max(site.requests[path] for path in site.requests) == 1


def test_a_damaged_store_is_brought_again(site: Site, searches: Search, tmp_path: Path) -> None:
    searches(urls(site))
    first = fetch(tmp_path, dataset())
    store = tmp_path / "data" / "downloads" / "search" / "pictures"
    sorted(store.glob("*.jpg"))[0].write_bytes(b"damaged")
    sorted(store.glob("*.json"))[-1].write_text("{", encoding="utf-8")
    assert fetch(tmp_path, dataset()) == first


class TestAGivenManifest:
    @pytest.fixture
    def manifest(self, site: Site, searches: Search, tmp_path: Path) -> Path:
        """What an earlier search on another machine left."""
        searches({term: [*found, f"{site.address}/404.jpg"] for term, found in urls(site, 6).items()})
        fetch(tmp_path / "there", dataset(images=14))
        path = tmp_path / "birds and forests.json"
        (tmp_path / "there" / "data" / "search.12345678" / "manifest.json").rename(path)
        searches({})  # nothing is searched for again
        return path

    def test_brings_the_same_data_elsewhere(self, site: Site, manifest: Path, tmp_path: Path) -> None:
        given = read_manifest(manifest)
        again = fetch(tmp_path / "here", dataset(terms=None, manifest=str(manifest)))
        assert again == given
        assert again.sha256 == given.sha256

    def test_fetches_nothing_where_its_pictures_are_there(self, site: Site, manifest: Path, tmp_path: Path) -> None:
        site.requests.clear()
        assert fetch(tmp_path / "there", dataset(manifest=str(manifest))) == read_manifest(manifest)
        assert not site.requests

    def test_says_which_pictures_are_gone_or_have_changed_and_how_many_a_class(
        self, site: Site, manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        del site.pages["/bird/0.jpg"], site.pages["/bird/3.jpg"]
        site.pages["/forest/1.jpg"] = picture(seed=99)
        here = tmp_path / "here"
        with pytest.raises(StudyError) as caught:
            fetch(here, dataset(manifest=str(manifest)))
        said = str(caught.value)
        assert "\n" not in said
        assert said.startswith(
            "dataset.manifest: 'birds and forests.json': 3 of 12 pictures are gone or have changed ("
        )
        assert "(bird 2 of 6, forêt 1 of 6)" in said
        assert "here/data/search.12345678/remaining.json" in said
        assert str(tmp_path) not in said
        told = capsys.readouterr().err
        assert f"bird: gone: {site.address}/bird/0.jpg: the server answers 404 Not Found" in told
        assert f"bird: gone: {site.address}/bird/3.jpg: the server answers 404 Not Found" in told
        assert f"forêt: gone: {site.address}/forest/1.jpg: it has changed: its checksum is" in told
        assert not (here / "data" / "search.12345678" / "manifest.json").exists()

    def test_that_lost_pictures_leaves_one_of_the_others_to_go_on_with(
        self, site: Site, manifest: Path, tmp_path: Path
    ) -> None:
        del site.pages["/bird/0.jpg"]
        here = tmp_path / "here"
        with pytest.raises(StudyError):
            fetch(here, dataset(manifest=str(manifest)))
        site.requests.clear()
        remaining = here / "data" / "search.12345678" / "remaining.json"
        rest = fetch(here, dataset(manifest=str(remaining)))
        assert not site.requests  # what is the same was kept
        given = read_manifest(manifest)
        assert {item.name for item in rest.items} < {item.name for item in given.items}
        assert len(rest.items) == len(given.items) - 1
        assert {item.name for item in rest.left_out} == {
            f"{site.address}/404.jpg", f"{site.address}/bird/0.jpg"
        }  # fmt: skip
        assert rest.sha256 != given.sha256

    def test_is_brought_whole_once_a_lost_picture_is_back(self, site: Site, manifest: Path, tmp_path: Path) -> None:
        content = site.pages.pop("/bird/0.jpg")
        with pytest.raises(StudyError):
            fetch(tmp_path / "here", dataset(manifest=str(manifest)))
        site.pages["/bird/0.jpg"] = content
        site.requests.clear()
        assert fetch(tmp_path / "here", dataset(manifest=str(manifest))) == read_manifest(manifest)
        assert site.requests == {"/bird/0.jpg": 1}

    def test_says_so_where_no_server_answers(self, manifest: Path, tmp_path: Path) -> None:
        text = manifest.read_text(encoding="utf-8")
        address = json.loads(text)["items"][0]["origin"]["url"].split("/")[2]
        manifest.write_text(text.replace(address, "pictures.invalid"), encoding="utf-8")
        with pytest.raises(StudyError, match=r"none of its 12 addresses answers, .* not known\).*Check the network"):
            fetch(tmp_path / "here", dataset(manifest=str(manifest)))

    def test_tells_of_other_bytes_from_another_encoder(
        self, manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("study.data.search.picture.QUALITY", 60)
        again = fetch(tmp_path / "here", dataset(manifest=str(manifest)))
        assert "12 of 12 pictures have the same download but other stored bytes" in capsys.readouterr().err
        assert again.sha256 != read_manifest(manifest).sha256


def test_no_network_is_one_error_that_says_what_to_do(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searches: Search
) -> None:
    searches({"bird photo": [f"http://nowhere.invalid/{number}.jpg" for number in range(20)]})
    with pytest.raises(StudyError) as caught:
        fetch(tmp_path, dataset())
    said = str(caught.value)
    assert "dataset.terms.bird: 0 of 4 pictures are available, because 16 of 16 addresses do not answer" in said
    assert all(words in said for words in ("next start continues", "Check the network", "dataset.source: folder"))


def test_a_network_that_goes_away_makes_no_smaller_data_and_the_next_start_goes_on(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    found = urls(site, 16)
    searches(found)
    lost = {path: site.pages.pop(path) for path in list(site.pages) if path > "/bird/1.jpg"}

    def away(request: Request) -> None:
        request.connection.close()

    site.pages |= dict.fromkeys(lost, away)
    with pytest.raises(StudyError, match=r"2 of 4 pictures are available, because 14 of 16 addresses do not answer"):
        fetch(tmp_path, dataset())
    site.pages |= lost
    assert len(fetch(tmp_path, dataset()).items) == 8


def test_a_search_that_broke_off_is_asked_again_at_the_next_start_and_keeps_what_it_found(
    site: Site, searches: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = urls(site, 16)
    searches({term: addresses[:3] for term, addresses in found.items()}, "Ratelimit")
    short = r"dataset\.terms\.bird: 3 of 4 pictures .* 'bird photo' broke off \(Ratelimit\); .*next start"
    with pytest.raises(StudyError, match=short):
        fetch(tmp_path, dataset())
    assert "search: 'bird photo': broke off at 3 of 16 addresses (Ratelimit)" in capsys.readouterr().err
    asked = searches({term: addresses[8:] for term, addresses in found.items()})
    asked.clear()
    manifest = fetch(tmp_path, dataset())
    assert asked == [("bird photo", 16), ("forest photo", 16)]
    birds = {item.origin.url for item in manifest.items if item.label == "bird" and item.origin}
    assert birds == {*found["bird photo"][:3], found["bird photo"][8]}
    fetch(tmp_path, dataset(seed=7))
    assert len(asked) == 2  # this one went to its end


def test_a_search_that_broke_off_with_enough_pictures_goes_on_with_them(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    searches(urls(site, 6), "timed out")
    assert len(fetch(tmp_path, dataset()).items) == 8
    asked = searches({term: [] for term in TERMS.values()}, "timed out")
    asked.clear()
    assert len(fetch(tmp_path, dataset(seed=7)).items) == 8
    assert len(asked) == 2


def test_what_could_not_be_reached_is_tried_another_time_after_all_that_could(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    found = urls(site, 6)
    searches(found)
    lost = site.pages["/bird/1.jpg"]
    site.pages["/bird/1.jpg"] = lambda request: request.connection.close()
    first = fetch(tmp_path, dataset())
    assert f"{site.address}/bird/1.jpg" in {item.name for item in first.left_out}
    site.pages["/bird/1.jpg"] = lost
    split = fetch(tmp_path, dataset(seed=7))
    assert {item.name for item in split.items} == {item.name for item in first.items}
    searches({term: [] for term in TERMS.values()})
    more = fetch(tmp_path, dataset(images=12))
    assert found["bird photo"][1] in {item.origin.url for item in more.items if item.origin}


def test_a_search_that_finds_too_little_says_so_or_is_an_error(
    site: Site, searches: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    searches(urls(site, 3))
    assert len(fetch(tmp_path, dataset()).items) == 6
    assert "search: bird: found only 3 of the 4 wanted pictures" in capsys.readouterr().err
    searches({"bird photo": site.pictures("one", 1) + [f"{site.address}/404.jpg"]})
    with pytest.raises(
        StudyError,
        match=r"dataset\.terms\.bird: 'bird photo' .* 1 of the 2 pictures found can be used; .* 404 Not Found",
    ):
        fetch(tmp_path / "other", dataset())


def test_all_of_it_ends_in_time(site: Site, searches: Search, tmp_path: Path) -> None:
    searches({"bird photo": [site.put(f"{number}.jpg", drip) for number in range(40)]})
    with pytest.raises(StudyError, match=r"the search took longer than 0\.2 s; verified pictures are kept"):
        fetch(tmp_path, dataset(images=80), bounds=Bounds(seconds=0.3), seconds=0.2)
