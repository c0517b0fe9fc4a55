"""A CSV file from anywhere, read as text: what is not a table is one error with its line."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pandas as pd

from study.analysis.table.files import LARGEST
from study.base.errors import StudyError
from study.base.files import check_plain

OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}


def read_csv(path: Path) -> pd.DataFrame:
    """Return the cells of a file as text, each row by its line. Raise :class:`StudyError` if it is no table.

    Cells are separated by commas; the first line that is not blank names the columns.
    """
    try:
        check_plain(path, LARGEST)
    except StudyError as error:
        raise StudyError(f"{path}: cannot be read as a table: {error}") from None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(_rows(file, path.name))
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise StudyError(f"{path.name}: cannot be read as a table: it is not text in UTF-8") from None
    if not rows:
        raise StudyError(f"{path.name}: cannot be read as a table: it is empty")
    (line, header), *rest = rows
    names = [cell.strip() for cell in header]
    for separator, words in OTHER_SEPARATORS.items():
        if len(names) == 1 and separator in names[0]:
            raise StudyError(f"{path.name}: line {line}: the cells are separated by {words}: separate them by commas")
    return pd.DataFrame(
        [cells for _, cells in rest], columns=names, index=pd.Index([at for at, _ in rest], name="line")
    )


def _rows(file: TextIO, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank with its first line. Raise :class:`StudyError` for one of another length."""
    reader, width, line = csv.reader(file, strict=True), 0, 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells) or len(cells) > 1:
                width = width or len(cells)
                if len(cells) != width:
                    raise StudyError(f"{name}: line {line}: {len(cells)} cell(s), where the first line has {width}")
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise StudyError(f"{name}: line {line}: cannot be read as a table ({error})") from None
