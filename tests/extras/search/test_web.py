import socket
from collections.abc import Iterator

import pytest

from study_extras.search.web import Bounds, Refused, download
from tests.extras.search.site import Request, Site, chunked, drip, drip_of_headers, endless, picture, redirect, serving

BOUNDS = Bounds(bytes=50_000, seconds=10, private_addresses=True)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as site:
        yield site


def refusal(url: str, bounds: Bounds = BOUNDS) -> Refused:
    with pytest.raises(Refused) as caught:
        download(url, bounds)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_picture_comes_as_it_is_whole_or_in_chunks_and_over_redirects(site: Site) -> None:
    content = picture()
    assert download(site.put("a.jpg", content), BOUNDS) == content
    assert download(site.put("b.jpg", chunked(content)), BOUNDS) == content
    assert download(site.put("c.jpg", redirect("/a.jpg")), BOUNDS) == content
    site.pages["/%E5%86%99%E7%9C%9F%20x.jpg"] = content  # a search gives addresses as people read them
    assert download(f"{site.address}/写真 x.jpg", BOUNDS) == content


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "binary/octet-stream", ""])
def test_a_picture_whose_type_says_little_is_taken(site: Site, kind: str) -> None:
    url = site.put("a.jpg", lambda request: request.send(b"bytes", kind))
    assert download(url, BOUNDS) == b"bytes"


def test_what_is_no_picture_or_too_large_is_refused_with_the_reason(site: Site) -> None:
    page = site.put("page.jpg", lambda request: request.send(b"<html>", "text/html; charset=utf-8"))
    assert str(refusal(page)) == "its content type is 'text/html', which is not that of an image"
    assert str(refusal(site.address + "/nowhere.jpg")) == "the server answers 404 Not Found"
    huge = site.put("huge.jpg", lambda request: request.send(b"", length=10**12))
    assert str(refusal(huge)) == "it has more than 50000 bytes"
    assert str(refusal(site.put("endless.jpg", endless))) == "it has more than 50000 bytes"
    short = site.put("short.jpg", lambda request: request.send(b"short", length=1000))
    assert str(refusal(short)) == "the connection broke off"


@pytest.mark.parametrize("answer", [drip, drip_of_headers])
def test_a_server_that_never_ends_is_cut_off_in_its_body_and_in_its_head(site: Site, answer: object) -> None:
    url = site.put("slow.jpg", answer)  # type: ignore[arg-type]
    refused = refusal(url, Bounds(seconds=0.5, private_addresses=True))
    assert (str(refused), refused.unreachable) == ("it took longer than 0.5 s", True)


def test_redirects_end(site: Site) -> None:
    assert str(refusal(site.put("loop.jpg", redirect("/loop.jpg")))) == "it redirects more than 5 times"
    assert site.requests["/loop.jpg"] == 6
    assert str(refusal(site.put("file.jpg", redirect("file:///etc/passwd")))) == "it is not an http or https address"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://host/a.jpg", "data:,x", "a.jpg", "http://", "http://[x/", ""]
)
def test_only_the_web_is_asked(url: str) -> None:
    assert str(refusal(url)) == "it is not an http or https address"


def test_private_addresses_are_asked_for_nothing_unless_that_is_allowed(site: Site) -> None:
    closed = Bounds(private_addresses=False)
    url = site.put("a.jpg", picture())
    assert str(refusal(url, closed)) == "its address is private: the internet does not reach it"
    assert str(refusal(url.replace("127.0.0.1", "localhost"), closed)).startswith("its address is private")
    assert not site.requests


PRIVATE = {
    "this machine": ["127.0.0.1", "::1", "0.0.0.0", "::"],
    "a private network": ["10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "fd00::1", "fe80::1%eth0"],
    "many machines": ["224.0.0.1", "239.1.1.1", "ff02::1", "ff0e::1"],
    "IPv4 in IPv6": ["::ffff:10.0.0.1", "::127.0.0.1", "::ffff:0:7f00:1"],
    "IPv4 behind a translator": ["64:ff9b::a00:1", "64:ff9b::e000:1", "64:ff9b:1::808:808"],
    "IPv4 behind a tunnel": ["2002:a00:1::", "2002:7f00:1::1", "2001:0:808:808::1"],
    "nobody's": ["2001:db8::1", "240.0.0.1", "fec0::1", "4000::1"],
}


@pytest.mark.parametrize("address", [one for kind in PRIVATE.values() for one in kind])
def test_a_connection_to_what_the_internet_does_not_reach_is_closed_unused(
    site: Site, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(socket.socket, "getpeername", lambda _: (address, 80))
    url = site.put("a.jpg", picture())
    assert str(refusal(url, Bounds())) == "its address is private: the internet does not reach it"
    assert not site.requests


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
)
def test_a_connection_to_a_machine_of_the_internet_is_used(
    site: Site, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(socket.socket, "getpeername", lambda _: (address, 80))
    content = picture()
    assert download(site.put("a.jpg", content), Bounds()) == content


def test_a_redirect_to_a_private_address_is_refused_too(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first connection passes for one to the internet, the second is seen as what it is."""
    seen: list[str] = []
    real = socket.socket.getpeername

    def peer(connection: socket.socket) -> tuple[str, int]:
        seen.append("asked")
        return ("93.184.215.14", 80) if len(seen) == 1 else real(connection)

    monkeypatch.setattr(socket.socket, "getpeername", peer)
    elsewhere = site.address.replace("127.0.0.1", "localhost")
    site.put("inner.jpg", picture())
    url = site.put("outer.jpg", redirect(f"{elsewhere}/inner.jpg"))
    assert str(refusal(url, Bounds())).startswith("its address is private")
    assert site.requests == {"/outer.jpg": 1}


def test_only_a_refusal_that_another_time_may_change_counts_as_unreachable(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(request: Request) -> None:
        request.send_error(503)

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert refusal(site.put("busy.jpg", busy)).unreachable
    with monkeypatch.context() as patched:  # some networks answer for a name that does not exist
        patched.setattr(socket, "getaddrinfo", unknown)
        assert refusal("http://nowhere.invalid/a.jpg").unreachable
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert refusal(f"http://127.0.0.1:{unused.getsockname()[1]}/a.jpg").unreachable
    assert not refusal(f"{site.address}/404.jpg").unreachable


def test_a_proxy_of_the_environment_is_used_and_decides_itself(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    content = picture()
    site.pages["http://pictures.example/a.jpg"] = content  # what a proxy is asked for
    monkeypatch.setenv("http_proxy", site.address.removeprefix("http://"))
    assert download("http://pictures.example/a.jpg", Bounds()) == content
