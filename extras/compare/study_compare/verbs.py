"""The verb ``compare``."""

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path

from study.base.errors import StudyError
from study.verbs.declare import argument, free, print_lines, say, verb

NOT_PASSED = 3
"""Exit code for a slowdown or a missing setting: 1 is an error, and 2 a wrong command line."""


def share(text: str) -> float:
    """Return a share above 0 and up to 1, written as 0.05 or as 5%."""
    with suppress(ValueError):
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        if 0 < value <= 1:
            return value
    raise argparse.ArgumentTypeError(
        f"{text!r} is not allowed: a share above 0 and up to 1, such as 0.05 or 5%"
    )


@verb(
    argument(
        "folders",
        nargs="+",
        type=Path,
        metavar="folder",
        help="folders of results, or bundles; the first is the baseline",
    ),
    argument(
        "--study",
        action="append",
        default=[],
        help="only this study (repeatable; default: all that each has)",
    ),
    argument(
        "--margin",
        type=share,
        help="ratios up to 1 + this count as equivalent (default: the study's own)",
    ),
    argument("--output", type=free, help="write the comparison as JSON, too"),
    argument(
        "--fail-if-slower",
        type=share,
        metavar="SHARE",
        help=f"exit with {NOT_PASSED} if a result is slower than the first by more than this, "
        "such as 5%%, and by more "
        "than starts differ; or if it lacks a setting, or learns less",
    ),
)
def compare(options: argparse.Namespace) -> None:
    """Say which of several results folders is faster at the same work, how sure that is, and what
    differs."""
    from study.artifacts.bundle import as_folders
    from study.base.files import write_whole
    from study_compare.results import studies_of
    from study_compare.step import as_text, compare_folders, failures

    if len(options.folders) < 2:
        raise StudyError("compare: give two results folders or more")
    with as_folders(options.folders) as folders:
        # Where a missing study must not pass, all of the baseline are compared, and not those that
        # each folder has.
        asked = options.study or (studies_of(folders[:1], []) if options.fail_if_slower else [])
        found = compare_folders(folders, asked, options.margin)
    if options.output:
        values = [one.model_dump(mode="json") for one in found]
        write_whole(options.output, json.dumps(values, indent=1, allow_nan=False))
    print_lines(as_text(found))
    failed = list(failures(found, options.fail_if_slower)) if options.fail_if_slower else []
    for line in failed:
        say(f"not passed: {line}")
    if failed:
        sys.stdout.flush()
        sys.exit(NOT_PASSED)
