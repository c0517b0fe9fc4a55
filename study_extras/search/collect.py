"""Download of pictures by their URLs: from the store, otherwise from the web, within a time limit."""

import hashlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from study.base.errors import StudyError
from study_extras.search.store import Store, Stored
from study_extras.search.web import Bounds, Refused, download

WORKERS = 8
BATCH = 16
"""Largest number of downloads that are held in memory at once."""
OFFLINE = (
    "; verified pictures are kept, and the same command goes on from there. Check the network, or use drawn images "
    "(dataset.source: generated)"
)


@dataclass(frozen=True)
class Wanted:
    """A picture to bring. ``sha256`` is the required checksum of its download, or None if any is accepted."""

    url: str
    sha256: str | None = None


class Collector:
    """Brings pictures and stores them. ``answered`` is true once any server has answered."""

    def __init__(self, store: Store, bounds: Bounds, seconds: float) -> None:
        self.store, self.bounds, self.seconds = store, bounds, seconds
        self.ends = time.monotonic() + seconds
        self.answered = False

    def bring(self, wanted: Sequence[Wanted]) -> list[Stored | Refused]:
        """Return each picture, or the reason for its absence, in the order of ``wanted``; at most :data:`BATCH`.

        Raise :class:`StudyError` if the time for all pictures is over.
        """
        if time.monotonic() > self.ends:
            raise StudyError(f"search: it took longer than {self.seconds:g} s{OFFLINE}")
        known = [self._known(item) for item in wanted]
        missing = [item.url for item, stored in zip(wanted, known, strict=True) if stored is None]
        with ThreadPoolExecutor(WORKERS) as pool:
            contents = iter(list(pool.map(self._download, missing)))
        return [stored or self._keep(item, next(contents)) for item, stored in zip(wanted, known, strict=True)]

    def _known(self, item: Wanted) -> Stored | None:
        return self.store.by_sha256.get(item.sha256) if item.sha256 else self.store.by_url.get(item.url)

    def _download(self, url: str) -> bytes | Refused:
        try:
            return download(url, self.bounds)
        except Refused as refused:
            return refused

    def _keep(self, item: Wanted, content: bytes | Refused) -> Stored | Refused:
        self.answered |= not (isinstance(content, Refused) and content.unreachable)
        if isinstance(content, Refused):
            return content
        checksum = hashlib.sha256(content).hexdigest()
        if item.sha256 and checksum != item.sha256:
            return Refused(f"it has changed: its checksum is {checksum[:12]}, and was {item.sha256[:12]}")
        try:
            return self.store.keep(item.url, content)
        except StudyError as error:
            return Refused(str(error))
