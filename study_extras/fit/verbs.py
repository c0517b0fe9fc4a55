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
    argument("--by", action="append", default=[], metavar="COLUMN", help="fit each level alone; may be given again"),
    argument(
        "--pool", action="append", default=[], metavar="COLUMN", help="a column whose levels make no difference; again"
    ),
    argument("--rate", action=argparse.BooleanOptionalAction, help="y is a rate, and times are 1/y; or it is a time"),
    argument("--decimal", choices=["comma", "point"], help="the mark of decimals, where a table does not show it"),
    argument("--output", type=free, metavar="FILE", help="JSON file to write"),
)
def fit(options: argparse.Namespace) -> None:
    """Fit laws to the times of any table."""
    from study.base.errors import StudyError
    from study.base.files import write_if_changed
    from study_extras.fit.by import fit_each, json_of_each, text_of_each
    from study_extras.fit.laws import as_json, as_text, fit_columns
    from study_extras.fit.table import Columns
    from study_extras.fit.text import read_csv

    if options.output and Path(options.output).resolve() == options.table.resolve():
        raise StudyError(
            key="--output", value=str(options.output), why="it is the table that is read", allowed="another file"
        )
    columns = Columns(options.x, options.y, options.block, options.session, options.pool, options.rate)
    frame, found = read_csv(options.table, options.x, options.y, options.decimal)
    if found:
        print_lines(f"{options.table.name}: {', '.join(found)}.\n")
    if options.by:
        groups = fit_each(frame, options.by, columns, options.table.name, "--")
        text, values = text_of_each(groups), json_of_each(groups)
    else:
        one = fit_columns(frame, columns, options.table.name, "--")
        text, values = as_text(one), as_json(one)
    print_lines(text)
    if options.output:
        write_if_changed(options.output, json.dumps(values, indent=1, allow_nan=False))
