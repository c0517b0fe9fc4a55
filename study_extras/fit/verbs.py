"""The verb ``fit``."""

import argparse
import json
from pathlib import Path

from study.verbs.declare import argument, free, print_lines, verb


@verb(
    argument("table", type=Path, help="any CSV file"),
    argument("--x", default="batch_size", help="column on the horizontal axis (default: batch_size)"),
    argument("--y", default="seconds", help="column of times in seconds (default: seconds)"),
    argument("--block", help="column that names rows measured together, such as a replicate"),
    argument("--session", help="column that names the start in which a row was measured; its blocks are its own"),
    argument("--output", type=free, metavar="FILE", help="JSON file to write"),
)
def fit(options: argparse.Namespace) -> None:
    """Fit laws to the times of any table."""
    from study.base.files import write_if_changed
    from study_extras.fit.laws import as_json, as_text, fit_table
    from study_extras.fit.table import checked_table
    from study_extras.fit.text import read_csv

    columns = (options.x, options.y, options.block, options.session)
    curve, optimum = fit_table(checked_table(read_csv(options.table), *columns, options.table.name, "--"))
    print_lines(as_text(curve, optimum, options.x))
    if options.output:
        write_if_changed(options.output, json.dumps(as_json(curve, optimum), indent=1, allow_nan=False))
