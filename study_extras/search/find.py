"""The image search: from a term to URLs.

Only this module knows the search library, and imports it when needed.
"""

import time
from collections.abc import Collection
from itertools import count
from typing import NamedTuple
from urllib.request import getproxies

from study.base.errors import StudyError

ANSWER_SECONDS = 10
PAUSE_SECONDS = 1.0
"""Seconds between two pages: a client that asks faster soon gets no more answers."""
NO_MORE = "No results found"
"""The library's words for an empty page. With any other words there may be more results another time."""
WITHOUT = (
    ". Check the network, give the manifest of an earlier search as --manifest, or use drawn images "
    "(dataset.source: generated)"
)


class Answer(NamedTuple):
    """The result of a search. ``trouble`` is the reason for an early end, or None if the search was complete."""

    urls: list[str]
    trouble: str | None = None


def find(term: str, wanted: int, known: Collection[str] = ()) -> Answer:
    """Return at most ``wanted`` URLs of pictures, the best first, without duplicates.

    Raise :class:`StudyError` if the search cannot be reached or finds nothing, and no URL is ``known`` from before.
    """
    try:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError:
        raise StudyError("search needs the package ddgs: make dev") from None
    engines = DDGS(proxy=getproxies().get("https"), timeout=ANSWER_SECONDS)
    urls: dict[str, None] = {}
    trouble = None
    for page in count(1):
        before = len(urls)
        try:
            results = engines.images(term, max_results=None, page=page)
        except DDGSException as error:
            reason = (str(error).splitlines() or ["no reason given"])[0][:200]
            if not (urls or known):
                raise StudyError(f"search: the search for {term!r} failed ({reason}){WITHOUT}") from None
            # A rate limit or a timeout does not mean that this was the last page.
            trouble = None if reason.startswith(NO_MORE) else reason
            break
        urls |= {str(result["image"]): None for result in results if result.get("image")}
        if len(urls) >= wanted or len(urls) == before:
            break
        time.sleep(PAUSE_SECONDS)
    return Answer(list(urls)[:wanted], trouble)
