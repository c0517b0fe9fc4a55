"""The image search: a term in, URLs out. The one place that knows the search library, which is imported when needed."""

import time
from itertools import count
from urllib.request import getproxies

from study.errors import StudyError

ANSWER_SECONDS = 10
PAUSE_SECONDS = 1.0
"""Between two pages: whoever asks faster is soon answered no more."""
WITHOUT = (
    ". Look at the network, name the manifest of an earlier search as dataset.manifest, or use your own photographs "
    "(dataset.source: folder) or drawn ones (generated)"
)


def find(term: str, wanted: int) -> list[str]:
    """At most ``wanted`` URLs of pictures, the best first, none twice.

    Raises :class:`StudyError` where the search is not to be reached or finds nothing.
    """
    try:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError:
        raise StudyError("dataset.source: 'search' needs the package ddgs: make env, or a newer image") from None
    engines = DDGS(proxy=getproxies().get("https"), timeout=ANSWER_SECONDS)
    urls: dict[str, None] = {}
    for page in count(1):
        before = len(urls)
        try:
            results = engines.images(term, max_results=None, page=page)
        except DDGSException as error:
            if urls:  # there is no further page
                break
            reason = (str(error).splitlines() or ["no reason given"])[0][:200]
            raise StudyError(f"dataset.terms: the search for {term!r} failed ({reason}){WITHOUT}") from None
        urls |= {str(result["image"]): None for result in results if result.get("image")}
        if len(urls) >= wanted or len(urls) == before:
            break
        time.sleep(PAUSE_SECONDS)
    return list(urls)[:wanted]
