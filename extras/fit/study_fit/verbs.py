"""The verb ``fit``."""

import argparse
import json
from pathlib import Path
from typing import Any

from study.verbs.declare import argument, free, print_lines, verb


def option(text: str) -> tuple[str, Any]:
    """Return the name and the value of one of pandas' options: a value that is JSON is read as
    such."""
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: OPTION=VALUE, such as sep=';'")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


@verb(
    argument("table", type=Path, help="any CSV file"),
    argument(
        "x",
        nargs="?",
        default="batch_size",
        help="column on the horizontal axis (default: batch_size)",
    ),
    argument(
        "y", nargs="?", default="seconds", help="column of times in seconds (default: seconds)"
    ),
    argument("--block", help="column that names rows measured together, such as a replicate"),
    argument(
        "--session",
        help="column that names the start in which a row was measured; its blocks are its own",
    ),
    argument(
        "--pool",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column whose levels make no difference; again",
    ),
    argument("--rate", action="store_true", help="y is a rate, and times are 1/y"),
    argument(
        "--read",
        action="append",
        default=[],
        type=option,
        metavar="OPTION=VALUE",
        help="an option of pandas.read_csv, such as sep=';' or decimal=,; again",
    ),
    argument("--output", type=free, metavar="FILE", help="JSON file to write"),
)
def fit(options: argparse.Namespace) -> None:
    """Fit laws to the times of any table."""
    from study.base.errors import StudyError
    from study.base.files import write_if_changed
    from study_fit.laws import as_json, as_text, fit_columns
    from study_fit.table import Columns, read_table

    if options.output and Path(options.output).resolve() == options.table.resolve():
        raise StudyError(
            key="--output",
            value=str(options.output),
            why="it is the table that is read",
            allowed="another file",
        )
    columns = Columns(
        options.x, options.y, options.block, options.session, options.pool, options.rate
    )
    found = fit_columns(read_table(options.table, dict(options.read)), columns)
    print_lines(as_text(found))
    if options.output:
        write_if_changed(options.output, json.dumps(as_json(found), indent=1, allow_nan=False))
