"""A text file of a table from anywhere: its encoding, its separator and its mark of decimals are looked at first."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path

import pandas as pd

from study.analysis.table.files import LARGEST
from study.base.errors import StudyError
from study.base.files import check_plain

SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas"}
"""What may stand between cells, the likeliest first where a file can be read by several."""
MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Marks of byte order, and what they say."""
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}([.,]\d{3})+")
"""A number such as 1,024: its mark may be of thousands or of decimals."""
WHOLE = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?")


def read_csv(path: Path, x: str, y: str, decimal: str | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Return the cells of a file as text, each row by its line, and what was found out about the file in words.

    The first line that is not blank names the columns. ``x`` and ``y`` have decimal points afterwards; where the file
    does not show what their commas mean, ``decimal`` says it: ``comma`` or ``point``. Raise :class:`StudyError`
    if it is no table, or may be read in two ways.
    """
    try:
        check_plain(path, LARGEST)
        text, encoding = _decoded(path.read_bytes())
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file") from None
    except StudyError as error:
        raise StudyError(f"{path}: cannot be read as a table: {error}") from None
    rows, separated = _table(text, path.name)
    if not rows:
        raise StudyError(f"{path.name}: cannot be read as a table: it is empty")
    (_, header), *rest = rows
    names = [cell.strip() for cell in header]
    frame = pd.DataFrame(
        [cells for _, cells in rest], columns=names, index=pd.Index([at for at, _ in rest], name="line"), dtype=object
    )
    places = [place for place, name in enumerate(names) if name in (x, y)]
    comma = decimal == "comma" or (decimal is None and _has_decimal_commas(frame, places, x, path.name, separated))
    for place in places if comma else ():
        frame.isetitem(place, list(frame.iloc[:, place].str.replace(",", ".")))
    found = [encoding, *([f"separated by {separated}"] * (separated != "commas")), *(["decimal commas"] * comma)]
    return frame, [words for words in found if words]


def _decoded(content: bytes) -> tuple[str, str]:
    """Return the text of a file's bytes, and its encoding in words unless it is UTF-8."""
    encoding = next((name for mark, name in MARKS.items() if content.startswith(mark)), "")
    if not encoding and b"\0" in content:
        encoding = "utf-16-le" if content[1:2] == b"\0" else "utf-16-be"
    for name in [encoding] if encoding else ["utf-8-sig", "cp1252"]:
        try:
            text = content.decode(name)
        except UnicodeDecodeError:
            continue
        if "\0" in text or (name == "cp1252" and re.search(r"[\x01-\x08\x0e-\x1f]", text)):
            break
        return text, {"utf-8-sig": "", "cp1252": "Windows-1252"}.get(name, name[:6].upper())
    raise StudyError("it is not text in UTF-8, UTF-16 or Windows-1252; save a sheet as CSV")


def _table(text: str, name: str) -> tuple[list[tuple[int, list[str]]], str]:
    """Return each row with its line, and in words what separates cells."""
    start = re.match(r'\s*"?sep=([^"\s])"?[ \t]*\r?\n', text, re.IGNORECASE)  # a spreadsheet's own first line
    if start and start[1] in SEPARATORS:
        blank = "\n" * start[0].count("\n")
        return _rows(csv.reader(StringIO(blank + text[start.end() :], ""), delimiter=start[1], strict=True), name), (
            SEPARATORS[start[1]]
        )
    first = next((line for line in text.splitlines() if line.strip()), "")
    candidates = [separator for separator in SEPARATORS if separator in first]
    if not candidates and len(first.split()) > 1:
        try:
            return _rows((line.split() for line in StringIO(text)), name), "spaces"
        except StudyError:
            pass  # one column, whose name has several words
    errors = []
    for separator in candidates or [","]:
        try:
            rows = _rows(csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True), name)
            if len(rows[0][1]) > 1 or not candidates:
                return rows, SEPARATORS[separator]
        except StudyError as error:
            errors.append((first.count(separator), error))
        except IndexError:
            return [], "commas"
    if errors:
        raise max(errors, key=lambda one: one[0])[1]
    return _rows(csv.reader(StringIO(text, newline=""), strict=True), name), "commas"


def _rows(reader: Iterable[list[str]], name: str) -> list[tuple[int, list[str]]]:
    """Return each row that is not blank with its first line. Raise :class:`StudyError` for one of another length."""
    found: list[tuple[int, list[str]]] = []
    line = 1
    try:
        for number, cells in enumerate(reader, 1):
            if any(cell.strip() for cell in cells) or len(cells) > 1:
                width = len(found[0][1]) if found else len(cells)
                if len(cells) != width:
                    raise StudyError(f"{name}: line {line}: {len(cells)} cell(s), where the first line has {width}")
                found.append((line, cells))
            line = getattr(reader, "line_num", number) + 1
    except csv.Error as error:
        raise StudyError(f"{name}: line {line}: cannot be read as a table ({error})") from None
    return found


def _has_decimal_commas(frame: pd.DataFrame, places: Sequence[int], x: str, name: str, separated: str) -> bool:
    """Return whether commas in columns of numbers mark decimals. Raise :class:`StudyError` where that is not sure."""
    marked = {mark: list(_marked(frame, places, mark)) for mark in ",."}
    if marked[","] and marked["."]:
        (line, column, comma), (other, _, point) = marked[","][0], marked["."][0]
        raise StudyError(
            f"{name}: {comma!r} (line {line}, column {column!r}) and {point!r} (line {other}) have different marks: "
            "write a point or a comma before decimals, and no mark of thousands"
        )
    settled = any(not GROUPED.fullmatch(cell) for _, _, cell in marked[","])
    doubtful = list(_doubtful(frame, places, x)) if settled or separated != "commas" else []
    for line, column, cell in doubtful or ([] if settled else marked[","]):
        mark = "," if "," in cell else "."
        raise StudyError(
            f"{name}: line {line}, column {column!r}: {cell!r} may be {cell.replace(mark, '.', 1)} or "
            f"{cell.replace(mark, '')}: leave out marks of thousands, or say --decimal comma or --decimal point"
        )
    return settled


def _marked(frame: pd.DataFrame, places: Sequence[int], mark: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the column and the text of each number in which a mark stands."""
    for place in places:
        column = frame.iloc[:, place].str.strip()
        for line, cell in column[column.str.contains(mark, regex=False)].items():
            if NUMBER.fullmatch(cell):
                yield int(str(line)), str(frame.columns[place]), cell


def _doubtful(frame: pd.DataFrame, places: Sequence[int], x: str) -> Iterator[tuple[int, str, str]]:
    """Yield the first number like 1.024 of each column in which all others are like it, or whole.

    Times that are all like it are left out: a program has rounded them to three digits.
    """
    for place in places:
        column = frame.iloc[:, place].str.strip()
        grouped = column.map(lambda cell: bool(GROUPED.fullmatch(cell)))
        whole = column.map(lambda cell: bool(WHOLE.fullmatch(cell)))
        if grouped.any() and (whole.any() or frame.columns[place] == x) and (grouped | whole).all():
            yield int(column.index[grouped][0]), str(frame.columns[place]), column[grouped].iloc[0]
