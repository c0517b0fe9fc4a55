"""The verb ``search``."""

import argparse
from pathlib import Path

from study.base.errors import StudyError
from study.verbs.declare import argument, say, verb

IMAGES, MAX_SIZE = 400, 400
LARGEST_SIZE = 4096


def terms_of(words: list[str]) -> dict[str, str]:
    """Return the search term of each class, from words such as ``bird`` or ``bird=bird photo``.

    Raise :class:`StudyError` unless there are two classes or more, with names that folders can have.
    """
    from study_extras.search.manifest import check_labels

    terms: dict[str, str] = {}
    for word in words:
        label, named, term = word.partition("=")
        term = term if named else label
        if not term.strip():
            raise StudyError(key="TERM", value=word, why="say what to search for")
        if label in terms:
            raise StudyError(key="TERM", value=word, why=f"class {label!r} is there already")
        terms[label] = term
    try:
        check_labels(list(terms))
    except StudyError as error:
        raise StudyError(f"TERM: {error}; allowed: a term for each class, such as 'bird=bird photo'") from None
    return terms


def _count(least: int, most: int) -> object:
    def whole(text: str) -> int:
        if text.isdecimal() and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: a whole number from {least} to {most}")

    return whole


@verb(
    argument(
        "terms", nargs="*", metavar="TERM", help="what to search for, for each class: bird, or bird='bird photo'"
    ),
    argument("--output", type=Path, required=True, metavar="FOLDER", help="folder to fill, a subfolder for each class"),
    argument(
        "--images", type=_count(4, 1_000_000), metavar="N", help=f"pictures over all classes (default: {IMAGES})"
    ),
    argument(
        "--max-size", type=_count(32, LARGEST_SIZE), metavar="PIXELS",
        help=f"longest side of a stored picture (default: {MAX_SIZE})",
    ),
    argument("--manifest", type=Path, metavar="FILE", help="instead of terms: bring the pictures of an earlier search"),
    argument("--private-addresses", action="store_true", help="also download from addresses of the local network"),
)  # fmt: skip
def search(options: argparse.Namespace) -> str:
    """Fill a folder with the pictures that an image search finds, a subfolder for each class."""
    from study_extras.search.fetch import fill, fill_again
    from study_extras.search.web import Bounds

    bounds = Bounds(private_addresses=options.private_addresses)
    if options.manifest:
        if options.terms or options.images or options.max_size:
            raise StudyError("--manifest: it holds the terms, the images and their size: give none of them with it")
        made = fill_again(options.manifest, options.output, bounds, say)
    else:
        terms = terms_of(options.terms)
        made = fill(terms, options.images or IMAGES, options.max_size or MAX_SIZE, options.output, bounds, say)
    left_out = f", {len(made.left_out)} left out" if made.left_out else ""
    return (
        f"the pictures: {options.output}: {len(made.pictures)} of {len(made.counts)} classes{left_out}; a study takes "
        f"them with dataset.source: folder and dataset.path: {options.output}"
    )
