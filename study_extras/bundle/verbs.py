"""The verbs ``bundle`` and ``unbundle``."""

import argparse
from pathlib import Path

from study.verbs.declare import RESULTS, argument, free, say, verb


@verb(
    argument("studies", nargs="*", metavar="study", help="name of a study (default: those that were started last)"),
    argument(
        "--output",
        type=free,
        default="results.crate.zip",
        metavar="FILE",
        help="archive to write (default: results.crate.zip)",
    ),
    RESULTS,
)
def bundle(options: argparse.Namespace) -> str:
    """Write one archive of results, a Workflow Run RO-Crate, from which the same report can be made anywhere."""
    from study.base.files import ROOT
    from study_extras.bundle.write import write_bundle

    write_bundle(options.studies, options.results, ROOT, options.output, say)
    return f"the bundle: {options.output}"


@verb(
    argument("bundle", type=Path, help="an archive that `study bundle` wrote"),
    argument("folder", type=Path, nargs="?", help="folder to make (default: the archive's name without its ending)"),
)
def unbundle(options: argparse.Namespace) -> str:
    """Unpack a bundle into a new folder of results, whole or not at all, and never outside that folder."""
    from study_extras.bundle.unbundle import folder_of, unpack

    folder = options.folder or folder_of(options.bundle)
    unpack(options.bundle, folder, say)
    return f"the results: {folder}"
