"""The verbs ``compare`` and ``gate``."""

import argparse
import json
import sys
from contextlib import suppress
from pathlib import Path

from study.base.errors import StudyError
from study.verbs.declare import argument, free, print_lines, say, verb

NOT_PASSED = 3
"""Exit code of ``gate`` for a slowdown or a missing setting: 1 is an error, and 2 a wrong command line."""


def share(text: str) -> float:
    """Return a number above 0 and up to 1."""
    with suppress(ValueError):
        if 0 < float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not allowed: a number above 0 and up to 1")


@verb(
    argument(
        "folders",
        nargs="+",
        type=Path,
        metavar="folder",
        help="folders of results, or bundles; the first is the baseline",
    ),
    argument("--study", action="append", default=[], help="only this study (repeatable; default: all that each has)"),
    argument("--margin", type=share, help="ratios up to 1 + this count as equivalent (default: the study's own)"),
    argument("--output", type=free, help="write the comparison as JSON, too"),
    argument("--page", type=free, metavar="FILE", help="write it as a page, too"),
)
def compare(options: argparse.Namespace) -> None:
    """Say which of several results folders is faster at the same work, how sure that is, and what differs."""
    from study.artifacts.layout import bundles
    from study.base.files import write_whole
    from study_extras.compare.step import as_text, compare_folders

    if len(options.folders) < 2:
        raise StudyError("compare: give two results folders or more")
    with bundles().as_folders(options.folders, say) as folders:
        found = compare_folders(folders, options.study, options.margin)
    if options.output:
        values = [one.model_dump(mode="json") for one in found]
        write_whole(options.output, json.dumps(values, indent=1, allow_nan=False))
    if options.page:
        from study_extras.compare.page import write_page

        write_page(found, options.page)
    print_lines(as_text(found))


@verb(
    argument("baseline", type=Path, help="results folder, or bundle, with three starts or more of unchanged code"),
    argument("new", type=Path, help="results folder, or bundle, of the code in question"),
    argument("--study", action="append", default=[], help="only this study (repeatable; default: all that both have)"),
    argument("--junit", type=free, metavar="FILE", help="write a test case for each study, as CI services read it"),
    argument(
        "--history", type=Path, metavar="FOLDER", help="write a CSV of each study's starts, as Apache Otava reads it"
    ),
)
def gate(options: argparse.Namespace) -> None:
    """Exit with 3 if a new result is slower than the baseline's spread explains, or lacks a setting; with 0 if not."""
    from study.artifacts.layout import bundles
    from study_extras.compare.gate import gate_folders, write_histories, write_junit

    with bundles().as_folders([options.baseline, options.new], say) as (baseline, new):
        gated = gate_folders(baseline, new, options.study)
    if options.junit:
        write_junit(gated, options.junit)
    if options.history:
        write_histories(gated, options.history)
    for one in gated:
        print_lines(one.line)
    if any(one.failed for one in gated):
        sys.stdout.flush()
        sys.exit(NOT_PASSED)
