import hashlib
import io
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from PIL import Image

from study.base.errors import StudyError
from study.base.files import file_sha256
from study.cli import main
from study.config.sections import Dataset
from study.data.decode import MAX_PIXELS, decode
from study.data.sources import inspect, name_of, source_of
from study_extras.search import fetch as search_fetch
from study_extras.search.find import Answer
from study_extras.search.manifest import Manifest
from study_extras.search.picture import shrink
from study_extras.search.store import Store
from study_extras.search.web import Bounds
from tests.extras.search.site import Request, Site, drip, picture, redirect, serving

BOUNDS = Bounds(bytes=100_000, seconds=10, private_addresses=True)
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


def fetch(folder: Path, images: int = 8, bounds: Bounds = BOUNDS, seconds: float = 60) -> Manifest:
    """Fill a folder by a search."""
    return search_fetch.fill(TERMS, images, 400, folder, bounds, told, seconds)


def again(folder: Path, manifest: Path) -> Manifest:
    """Fill a folder with the pictures of an earlier search."""
    return search_fetch.fill_again(manifest, folder, BOUNDS, told)


def told(text: str) -> None:
    print(text, file=sys.stderr)


def manifest_in(folder: Path) -> Manifest:
    return Manifest.of_file(folder / "manifest.json")


def names(folder: Path) -> set[str]:
    """The pictures in a folder as a study finds them."""
    return {path.relative_to(folder).as_posix() for path in folder.glob("[!.]*/*")}


def data_of(folder: Path) -> str:
    """The name of a study's data that are a folder's: it is in the key of each run."""
    dataset = Dataset(source="folder", path=str(folder))
    return name_of(dataset, inspect(dataset).files)


def urls(site: Site, count: int = 4) -> dict[str, list[str]]:
    return {"bird photo": site.pictures("bird", count), "forest photo": site.pictures("forest", count)}


def test_a_search_leaves_verified_pictures_by_class_with_url_term_and_both_checksums(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    found = urls(site)
    searches(found)
    manifest = fetch(tmp_path)
    assert (manifest.counts, manifest.left_out) == ({"bird": 4, "forêt": 4}, [])
    assert manifest_in(tmp_path) == manifest
    for one in manifest.pictures:
        assert one.term == TERMS[one.label]
        assert one.url in found[one.term]
        page = site.pages[one.url.removeprefix(site.address)]
        assert isinstance(page, bytes)
        assert (one.bytes, one.sha256) == (len(page), hashlib.sha256(page).hexdigest())
        path = tmp_path / one.label / f"{one.sha256[:16]}.jpg"
        assert file_sha256(path) == one.stored_sha256
        assert decode(path, 3, 40).std() > 10
    assert names(tmp_path) == {picture.name for picture in manifest.pictures}


def test_a_study_takes_the_folder_and_the_same_pictures_are_the_same_data_wherever_and_whenever_they_came(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    searches(urls(site))
    fetch(tmp_path / "there")
    dataset = Dataset(source="folder", path=str(tmp_path / "there"))
    seen = inspect(dataset)
    assert (seen.classes, seen.train_images) == (2, 6)
    left_out = source_of(dataset).make(dataset, tmp_path / "data", tmp_path).left_out
    assert all(one.expected for one in left_out)
    again(tmp_path / "here", tmp_path / "there" / "manifest.json")
    assert data_of(tmp_path / "here") == data_of(tmp_path / "there")


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
    manifest = fetch(tmp_path)
    reasons = {item.url.rsplit("/", 1)[-1]: item.reason for item in manifest.left_out[:-1]}
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
    assert (both.url, both.reason) == (good[1], f"it is the same picture as {good[1]}")  # a bird for the first term
    assert [picture.label for picture in manifest.pictures] == ["bird"] * 4 + ["forêt"] * 4
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
        fetch(tmp_path, 20)
    before = site.requests.copy()
    manifest = fetch(tmp_path, 20)
    assert len(manifest.pictures) == 20
    assert [term for term, _ in asked] == ["bird photo", "forest photo"]  # once each
    again = site.requests - before
    assert sum(again.values()) == 20 - 5
    assert fetch(tmp_path, 20) == manifest
    assert site.requests == before + again


def test_more_pictures_are_of_the_same_search_and_fewer_leave_no_other_in_the_folder(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    found = urls(site, 40)
    late = site.pages.pop("/bird/1.jpg")
    searches(found)
    fetch(tmp_path)
    first = names(tmp_path)
    site.pages["/bird/1.jpg"] = late  # what was refused stays so
    searches({"bird photo": site.pictures("other", 40), "forest photo": site.pictures("others", 40)})
    fetch(tmp_path, 40)
    assert first < names(tmp_path)
    (tmp_path / "bird" / "mine.jpg").write_bytes(b"what no search brought stays")
    fetch(tmp_path)
    assert names(tmp_path) == first | {"bird/mine.jpg"}
    assert max(site.requests[path] for path in site.requests) == 1


def test_a_damaged_store_is_brought_again(site: Site, searches: Search, tmp_path: Path) -> None:
    searches(urls(site))
    first = fetch(tmp_path)
    store = tmp_path / ".search" / "pictures"
    sorted(store.glob("*.jpg"))[0].write_bytes(b"damaged")
    sorted(store.glob("*.json"))[-1].write_text("{", encoding="utf-8")
    assert fetch(tmp_path) == first


class TestAGivenManifest:
    @pytest.fixture
    def manifest(self, site: Site, searches: Search, tmp_path: Path) -> Path:
        """What an earlier search on another machine left."""
        searches({term: [*found, f"{site.address}/404.jpg"] for term, found in urls(site, 6).items()})
        fetch(tmp_path / "there", 14)
        path = tmp_path / "birds and forests.json"
        shutil.copy(tmp_path / "there" / "manifest.json", path)
        searches({})  # nothing is searched for again
        return path

    def test_brings_the_same_pictures_elsewhere(self, manifest: Path, tmp_path: Path) -> None:
        given = Manifest.of_file(manifest)
        assert again(tmp_path / "here", manifest) == given == manifest_in(tmp_path / "here")
        assert names(tmp_path / "here") == names(tmp_path / "there")

    def test_fetches_nothing_where_its_pictures_are_there(self, site: Site, manifest: Path, tmp_path: Path) -> None:
        site.requests.clear()
        assert again(tmp_path / "there", manifest) == Manifest.of_file(manifest)
        assert not site.requests

    def test_says_which_pictures_are_gone_or_have_changed_and_how_many_a_class(
        self, site: Site, manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        del site.pages["/bird/0.jpg"], site.pages["/bird/3.jpg"]
        site.pages["/forest/1.jpg"] = picture(seed=99)
        here = tmp_path / "here"
        with pytest.raises(StudyError) as caught:
            again(here, manifest)
        said = str(caught.value)
        assert "\n" not in said
        assert said.startswith("--manifest: 'birds and forests.json': 3 of 12 pictures are gone or have changed (")
        assert "(bird 2 of 6, forêt 1 of 6)" in said
        assert "here/remaining.json" in said
        assert str(tmp_path) not in said
        told = capsys.readouterr().err
        assert f"bird: gone: {site.address}/bird/0.jpg: the server answers 404 Not Found" in told
        assert f"bird: gone: {site.address}/bird/3.jpg: the server answers 404 Not Found" in told
        assert f"forêt: gone: {site.address}/forest/1.jpg: it has changed: its checksum is" in told
        assert not (here / "manifest.json").exists()
        assert names(here) == set()  # no study takes a part for the whole

    def test_that_lost_pictures_leaves_one_of_the_others_to_go_on_with(
        self, site: Site, manifest: Path, tmp_path: Path
    ) -> None:
        del site.pages["/bird/0.jpg"]
        here = tmp_path / "here"
        with pytest.raises(StudyError):
            again(here, manifest)
        site.requests.clear()
        rest = again(here, here / "remaining.json")
        assert not site.requests  # what is the same was kept
        given = Manifest.of_file(manifest)
        assert set(rest.pictures) < set(given.pictures)
        assert len(rest.pictures) == len(given.pictures) - 1 == len(names(here))
        assert {item.url for item in rest.left_out} == {f"{site.address}/404.jpg", f"{site.address}/bird/0.jpg"}

    def test_is_brought_whole_once_a_lost_picture_is_back(self, site: Site, manifest: Path, tmp_path: Path) -> None:
        content = site.pages.pop("/bird/0.jpg")
        with pytest.raises(StudyError):
            again(tmp_path / "here", manifest)
        site.pages["/bird/0.jpg"] = content
        site.requests.clear()
        assert again(tmp_path / "here", manifest) == Manifest.of_file(manifest)
        assert site.requests == {"/bird/0.jpg": 1}
        assert not (tmp_path / "here" / "remaining.json").exists()

    def test_says_so_where_no_server_answers(self, manifest: Path, tmp_path: Path) -> None:
        text = manifest.read_text(encoding="utf-8")
        address = json.loads(text)["pictures"][0]["url"].split("/")[2]
        manifest.write_text(text.replace(address, "pictures.invalid"), encoding="utf-8")
        with pytest.raises(StudyError, match=r"none of its 12 addresses answers, .* not known\).*Check the network"):
            again(tmp_path / "here", manifest)

    def test_tells_of_other_bytes_from_another_encoder(
        self, manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("study_extras.search.picture.QUALITY", 60)
        brought = again(tmp_path / "here", manifest)
        assert "12 of 12 pictures have the same download but other stored bytes" in capsys.readouterr().err
        for one in brought.pictures:
            assert file_sha256(tmp_path / "here" / one.name) == one.stored_sha256


def test_no_network_is_one_error_that_says_what_to_do(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searches: Search
) -> None:
    searches({"bird photo": [f"http://nowhere.invalid/{number}.jpg" for number in range(20)]})
    with pytest.raises(StudyError) as caught:
        fetch(tmp_path)
    said = str(caught.value)
    assert "bird: 0 of 4 pictures are available, because 16 of 16 addresses do not answer" in said
    assert all(words in said for words in ("same command goes on", "Check the network", "dataset.source: generated"))


def test_a_network_that_goes_away_makes_no_smaller_data_and_the_next_search_goes_on(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    found = urls(site, 16)
    searches(found)
    lost = {path: site.pages.pop(path) for path in list(site.pages) if path > "/bird/1.jpg"}

    def away(request: Request) -> None:
        request.connection.close()

    site.pages |= dict.fromkeys(lost, away)
    with pytest.raises(StudyError, match=r"2 of 4 pictures are available, because 14 of 16 addresses do not answer"):
        fetch(tmp_path)
    site.pages |= lost
    assert len(fetch(tmp_path).pictures) == 8


def test_a_search_that_broke_off_is_asked_again_and_keeps_what_it_found(
    site: Site, searches: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = urls(site, 16)
    searches({term: addresses[:3] for term, addresses in found.items()}, "Ratelimit")
    short = r"bird: 3 of 4 pictures .* 'bird photo' broke off \(Ratelimit\); .*same command"
    with pytest.raises(StudyError, match=short):
        fetch(tmp_path)
    assert "search: 'bird photo': broke off at 3 of 16 addresses (Ratelimit)" in capsys.readouterr().err
    asked = searches({term: addresses[8:] for term, addresses in found.items()})
    asked.clear()
    manifest = fetch(tmp_path)
    assert asked == [("bird photo", 16), ("forest photo", 16)]
    birds = {one.url for one in manifest.pictures if one.label == "bird"}
    assert birds == {*found["bird photo"][:3], found["bird photo"][8]}
    fetch(tmp_path)
    assert len(asked) == 2  # this one went to its end


def test_a_search_that_broke_off_with_enough_pictures_goes_on_with_them(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    searches(urls(site, 6), "timed out")
    assert len(fetch(tmp_path).pictures) == 8
    asked = searches({term: [] for term in TERMS.values()}, "timed out")
    asked.clear()
    assert len(fetch(tmp_path).pictures) == 8
    assert len(asked) == 2


def test_what_could_not_be_reached_is_tried_another_time_after_all_that_could(
    site: Site, searches: Search, tmp_path: Path
) -> None:
    found = urls(site, 6)
    searches(found)
    lost = site.pages["/bird/1.jpg"]
    site.pages["/bird/1.jpg"] = lambda request: request.connection.close()
    first = fetch(tmp_path)
    assert f"{site.address}/bird/1.jpg" in {item.url for item in first.left_out}
    site.pages["/bird/1.jpg"] = lost
    assert fetch(tmp_path).pictures == first.pictures
    searches({term: [] for term in TERMS.values()})
    more = fetch(tmp_path, 12)
    assert found["bird photo"][1] in {one.url for one in more.pictures}


def test_a_search_that_finds_too_little_says_so_or_is_an_error(
    site: Site, searches: Search, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    searches(urls(site, 3))
    assert len(fetch(tmp_path).pictures) == 6
    assert "search: bird: found only 3 of the 4 wanted pictures" in capsys.readouterr().err
    searches({"bird photo": site.pictures("one", 1) + [f"{site.address}/404.jpg"]})
    with pytest.raises(
        StudyError,
        match=r"bird: 'bird photo' .* 1 of the 2 pictures found can be used; .* 404 Not Found",
    ):
        fetch(tmp_path / "other")


def test_all_of_it_ends_in_time(site: Site, searches: Search, tmp_path: Path) -> None:
    searches({"bird photo": [site.put(f"{number}.jpg", drip) for number in range(40)]})
    with pytest.raises(StudyError, match=r"search: it took longer than 0\.2 s; verified pictures are kept"):
        fetch(tmp_path, 80, Bounds(seconds=0.3, private_addresses=True), 0.2)


def test_two_searches_at_once_in_one_folder_ask_once(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    found = urls(site, 10)
    look = Path.iterdir

    def find(term: str, wanted: int, known: Sequence[str]) -> Answer:
        asked.append(term)
        time.sleep(0.5)
        return Answer(found[term])

    def look_as_the_other_begins(folder: Path) -> Iterator[Path]:
        (folder / ".search").mkdir(exist_ok=True)
        return look(folder)

    (tmp_path / "pictures").mkdir()
    monkeypatch.setattr(search_fetch, "find", find)
    monkeypatch.setattr(Path, "iterdir", look_as_the_other_begins)
    line = ["search", *(f"{label}={term}" for label, term in TERMS.items()), "--images", "20", "--private-addresses"]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(main, [[*line, "--output", str(tmp_path / "pictures")]] * 2)) == [0, 0]
    assert sorted(asked) == sorted(TERMS.values())
    assert len(names(tmp_path / "pictures")) == 20
    assert max(site.requests.values()) == 1


@pytest.mark.parametrize(
    ("words", "key", "said"),
    [
        ([], "", "no class; allowed: a term for each class, such as 'bird=bird photo'"),
        (["bird"], "", "'bird' alone"),
        (["bird", "bird=a bird"], "TERM", "class 'bird' is there already"),
        (["bird", "forest= "], "TERM", "say what to search for"),
        (["bird", "../forest=forest"], "", "class '../forest' is not allowed"),
        (["bird", "forest", "fish", "--images", "5"], "--images", "each needs at least two"),
        (["bird", "forest", "--manifest", "m.json"], "", "--manifest: it holds the terms"),
        (["bird", "forest", "--images", "1"], "", "'1' is not allowed: a whole number from 4"),
        (["bird", "forest", "--max-size", "9"], "", "'9' is not allowed: a whole number from 32"),
        (["bird", "forest", "--output", "full"], "--output", "no search has filled it; name a new folder"),
        (["bird", "forest", "--output", "file"], "--output", "no search has filled it; name a new folder"),
    ],
)
def test_what_cannot_be_searched_for_is_one_line_before_any_search(
    words: list[str],
    key: str,
    said: str,
    searches: Search,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = searches({})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("kept")
    (tmp_path / "file").write_text("kept")
    try:
        code = main(["search", *words, *([] if "--output" in words else ["--output", "new"])])
    except SystemExit as end:
        code = int(end.code or 0)
    assert code in (1, 2)
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    assert key in error
    assert asked == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "mine.txt"]
