"""The image search: a term in, URLs out. The one place that knows the search library, which is imported when needed."""

import time
from collections.abc import Collection
from itertools import count
from typing import NamedTuple
from urllib.request import getproxies

from study.errors import StudyError

ANSWER_SECONDS = 10
PAUSE_SECONDS = 1.0
"""Between two pages: whoever asks faster is soon answered no more."""
NO_MORE = "No results found"
"""How the library says that a page is empty; whatever else it says, there may be more another time."""
WITHOUT = (
    ". Look at the network, name the manifest of an earlier search as dataset.manifest, or use your own photographs "
    "(dataset.source: folder) or drawn ones (generated)"
)


class Answer(NamedTuple):
    """What a search found. ``trouble``: why it broke off before its end; None where it went to it."""

    urls: list[str]
    trouble: str | None = None


def find(term: str, wanted: int, known: Collection[str] = ()) -> Answer:
    """At most ``wanted`` URLs of pictures, the best first, none twice.

    Raises :class:`StudyError` where the search is not to be reached or finds nothing, and no URL is ``known`` from
    before.
    """
    try:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError:
        raise StudyError("dataset.source: 'search' needs the package ddgs: make env, or a newer image") from None
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
                raise StudyError(f"dataset.terms: the search for {term!r} failed ({reason}){WITHOUT}") from None
            # A limit of the rate or of the time is no last page.
            trouble = None if reason.startswith(NO_MORE) else reason
            break
        urls |= {str(result["image"]): None for result in results if result.get("image")}
        if len(urls) >= wanted or len(urls) == before:
            break
        time.sleep(PAUSE_SECONDS)
    return Answer(list(urls)[:wanted], trouble)
