"""The search library as it is installed, with its transport replaced: no search engine is reached from a test."""

import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from study.base.errors import StudyError
from study_extras.search import find


@dataclass
class Answer:
    """What the library's own transport returns."""

    text: str
    status_code: int = 200

    @property
    def content(self) -> bytes:
        return self.text.encode()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[str]]:
    """DuckDuckGo's pages of picture URLs, by page number; Bing knows nothing."""
    client = pytest.importorskip("ddgs.http_client", reason="ddgs is not installed here")
    pages: dict[int, list[str]] = {}

    def request(self: object, method: str, url: str, params: dict[str, Any] | None = None, **_: Any) -> Answer:
        if url == "https://duckduckgo.com":
            return Answer('vqd="4-1234567890"&')
        if url == "https://duckduckgo.com/i.js":
            page = int((params or {}).get("s", 0)) // 100 + 1
            return Answer(json.dumps({"results": [{"image": url, "title": "x"} for url in pages.get(page, [])]}))
        return Answer("", status_code=404)

    monkeypatch.setattr(client.HttpClient, "request", request)
    monkeypatch.setattr(find, "PAUSE_SECONDS", 0.0)
    return pages


def test_pages_are_asked_for_until_there_are_enough_urls_and_none_is_there_twice(engine: dict[int, list[str]]) -> None:
    engine[1] = [f"https://a.example/{number}.jpg" for number in range(100)]
    engine[2] = [f"https://a.example/{number}.jpg" for number in range(50, 150)]
    engine[3] = ["https://a.example/150.jpg", ""]
    assert find.find("bird photo", 30) == (engine[1][:30], None)
    assert find.find("bird photo", 120).urls == [f"https://a.example/{number}.jpg" for number in range(120)]
    everything = find.find("bird photo", 500)
    assert (len(everything.urls), everything.trouble) == (151, None)


@pytest.mark.parametrize("name", ["RatelimitException", "TimeoutException", "DDGSException"])
def test_a_later_page_that_fails_is_no_last_page(
    engine: dict[int, list[str]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    engine[1] = ["https://a.example/1.jpg"]
    from ddgs import exceptions
    from ddgs.ddgs import DDGS  # the package's own name is a proxy until it is first called

    images = DDGS.images

    def limited(self: Any, query: str, **asked: Any) -> Any:
        if asked["page"] > 1:
            raise getattr(exceptions, name)("the server said wait\nand more")
        return images(self, query, **asked)

    monkeypatch.setattr(DDGS, "images", limited)
    assert find.find("bird photo", 30) == (engine[1], "the server said wait")


def test_a_search_that_fails_is_no_error_where_addresses_are_known(engine: dict[int, list[str]]) -> None:
    assert find.find("bird photo", 30, ["https://a.example/1.jpg"]) == ([], None)


def test_a_search_that_finds_nothing_is_one_error_that_says_what_to_do(engine: dict[int, list[str]]) -> None:
    with pytest.raises(StudyError) as caught:
        find.find("bird photo", 30)
    said = str(caught.value)
    assert "\n" not in said
    for words in ("'bird photo'", "No results found", "network", "--manifest", "dataset.source: generated"):
        assert words in said


def test_without_a_network_the_real_library_ends_in_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ddgs", reason="ddgs is not installed here")
    for name in ("https_proxy", "HTTPS_PROXY", "DDGS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StudyError, match=r"search: the search for 'bird photo' failed \(.*\)\. Check the"):
        find.find("bird photo", 30)


def test_without_the_library_the_error_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)
    with pytest.raises(StudyError, match="needs the package ddgs: make dev"):
        find.find("bird photo", 30)
