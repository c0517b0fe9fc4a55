"""The verb ``claims``."""

import argparse

from study.base.errors import StudyError
from study.verbs.declare import argument, print_lines, verb


@verb(argument("document", nargs="?", help="a folder of replications (default: all of them)"))
def claims(options: argparse.Namespace) -> None:
    """Print how far the published figures support each published claim."""
    from study.artifacts.published import all_published
    from study_extras.claims.examine import as_text, examine

    published = all_published()
    known = [one.name for one in published]
    if not known:
        raise StudyError(
            "claims: there is no folder replications with a published.csv here, nor a checkout that has one"
        )
    if options.document not in (None, *known):
        raise StudyError(key="document", value=options.document, why="no such replication", allowed=known)
    print_lines(as_text([claim for one in published if options.document in (None, one.name) for claim in examine(one)]))
