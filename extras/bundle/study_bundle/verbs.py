"""The verb ``bundle``."""

import argparse

from study.verbs.declare import RESULTS, argument, free, say, verb


@verb(
    argument(
        "studies",
        nargs="*",
        metavar="study",
        help="name of a study (default: those that were started last)",
    ),
    argument(
        "--output",
        type=free,
        default="results.bundle.zip",
        metavar="FILE",
        help="archive to write (default: results.bundle.zip)",
    ),
    RESULTS,
)
def bundle(options: argparse.Namespace) -> str:
    """Write one archive of plans, records and samples, from which the same report can be made
    anywhere."""
    from study.base.files import ROOT
    from study_bundle.write import write_bundle

    write_bundle(options.studies, options.results, ROOT, options.output, say)
    return f"the bundle: {options.output}"
