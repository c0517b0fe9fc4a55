"""A web server on this machine that serves good pictures and everything that can go wrong with one."""

import hashlib
import io
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from study.artifacts.prepared import Item, Manifest, Origin

TERMS = {"bird": "bird photo", "forest": "forest photo"}
Answer = Callable[["Request"], None]


class Request(BaseHTTPRequestHandler):
    """One request, answered by the site's page of that path."""

    site: "Site"

    def do_GET(self) -> None:
        """Answer."""
        self.site.requests[self.path] += 1
        answer = self.site.pages.get(self.path)
        if answer is None:
            self.send_error(404)
        elif isinstance(answer, bytes):
            self.send(answer)
        else:
            answer(self)

    def send(self, content: bytes, kind: str = "image/jpeg", length: int | None = None) -> None:
        """A whole answer. ``length``: what is announced, where that is not the truth."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Site:
    """Pages by their paths: bytes that are a picture, or a function that answers. Requests are counted."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.pages: dict[str, bytes | Answer] = {}
        self.requests: Counter[str] = Counter()

    def put(self, name: str, answer: bytes | Answer) -> str:
        """Serve ``answer`` under a name; its URL."""
        self.pages[f"/{name}"] = answer
        return f"{self.address}/{name}"

    def contents(self) -> dict[str, bytes]:
        """The pages that are bytes, by URL."""
        return {self.address + name: page for name, page in self.pages.items() if isinstance(page, bytes)}

    def pictures(self, word: str, count: int, first: int = 0) -> list[str]:
        """So many good pictures, each another one; their URLs."""
        return [
            self.put(f"{word}/{number}.jpg", picture(seed=hash_of(word) + number))
            for number in range(first, first + count)
        ]


def hash_of(word: str) -> int:
    """A number that tells words apart."""
    return sum(ord(letter) * 1000 for letter in word)


def picture(
    size: tuple[int, int] = (120, 90), kind: str = "JPEG", mode: str = "RGB", seed: int = 0, **save: Any
) -> bytes:
    """A picture as a file's bytes: blocks of colour, drawn from the seed."""
    rng = np.random.default_rng(seed)
    blocks = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    content = io.BytesIO()
    blocks.resize(size, Image.Resampling.NEAREST).convert(mode).save(content, kind, **save)
    return content.getvalue()


def listing(
    folder: Path, addresses: dict[str, list[str]], contents: dict[str, bytes] | None = None, **changes: Any
) -> Path:
    """The manifest of a search that found these URLs by class, with the checksums of what they hold."""
    items = []
    for label, urls in addresses.items():
        for url in urls:
            sha256 = hashlib.sha256((contents or {}).get(url, url.encode())).hexdigest()
            origin = Origin(url=url, term=TERMS.get(label, label), bytes=1, sha256=sha256)
            name = f"{label}/{sha256[:16]}.jpg"
            items.append(Item(name=name, bytes=1, sha256="0" * 64, label=label, split="train", origin=origin))
    values = {
        "source": "search", "generated": False, "seed": 42, "valid_fraction": 0.2, "max_size": 400, "encoder": "x",
        "classes": list(addresses), "train_images": 1, "valid_images": 1, "items": items,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "birds.json"
    path.write_text(Manifest.model_validate(values | changes).model_dump_json(), encoding="utf-8")
    return path


def redirect(target: str) -> Answer:
    """An answer that sends elsewhere."""

    def answer(request: Request) -> None:
        request.send_response(302)
        request.send_header("Location", target)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def drip(request: Request) -> None:
    """A picture that goes on for ever, a byte at a time."""
    request.send_response(200)
    request.send_header("Content-Type", "image/jpeg")
    request.end_headers()
    _trickle(request, b"\xff")


def drip_of_headers(request: Request) -> None:
    """An answer whose head never ends."""
    request.send_response(200)
    request.flush_headers()
    _trickle(request, b"X")


def _trickle(request: Request, byte: bytes) -> None:
    try:
        while True:
            request.wfile.write(byte)
            request.wfile.flush()
            time.sleep(0.05)
    except OSError:  # who asked has gone
        request.close_connection = True


def endless(request: Request) -> None:
    """A picture without a length that goes on for ever, as fast as it can."""
    request.send_response(200)
    request.send_header("Content-Type", "image/jpeg")
    request.end_headers()
    try:
        while True:
            request.wfile.write(b"\xff" * 65536)
    except OSError:
        request.close_connection = True


def chunked(content: bytes) -> Answer:
    """A picture in chunks, without a length."""

    def answer(request: Request) -> None:
        request.protocol_version = "HTTP/1.1"
        request.send_response(200)
        request.send_header("Content-Type", "image/jpeg")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for start in range(0, len(content), 1000):
            part = content[start : start + 1000]
            request.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        request.wfile.write(b"0\r\n\r\n")

    return answer


@contextmanager
def serving() -> Iterator[Site]:
    """A site at work on a free port."""
    handler = type("Handler", (Request,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    site = Site(f"http://127.0.0.1:{server.server_address[1]}")
    handler.site = site  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
