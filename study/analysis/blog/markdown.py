"""Markdown in which a value is shown as text, whatever it holds: no markup, no formula, no template of a site."""

import re
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

import yaml

from study.base.errors import printable

SPECIAL = {one: f"&#{ord(one)};" for one in "&<>|*_`[]\\$#~^{}"}
"""What Markdown, HTML, formulas and templates (Liquid) read as more than text, as character references."""


def inline(value: str) -> str:
    """Return ``value`` in one line, to be shown as it is inside a line: a cell, a heading, an item of a list."""
    line = "".join(SPECIAL.get(one, one) for one in printable(" ".join(value.split())))
    return line.replace("://", "&#58;//").replace("www.", "www&#46;")  # what becomes a link by itself


def paragraph(value: str) -> str:
    """Return ``value`` as a paragraph of its own: what begins a list, a rule or a definition is text, too."""
    line = re.sub(r"^(\d+)([.)])(?=\s|$)", lambda match: f"{match[1]}&#{ord(match[2])};", inline(value))
    return re.sub(r"^[-+=:]", lambda match: f"&#{ord(match[0])};", line)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; its values are escaped here, and each row has a cell for each column."""
    lines = [head, *rows]
    cells = [f"| {' | '.join(inline(cell) for cell in line)} |" for line in lines]
    return "\n".join([cells[0], f"|{' --- |' * len(head)}", *cells[1:]])


def picture(alt: str, address: str) -> str:
    """Return a picture; ``address`` is the path of its file from the post's folder."""
    return f"![{inline(alt)}]({quote(address)})"


def front_matter(date: datetime, values: dict[str, str | bool | list[str]]) -> str:
    """Return the block of YAML that a site's generator reads, with ``date`` in the form that all of them know."""
    plain = {key: _plain(value) if isinstance(value, str) else value for key, value in values.items()}
    block = yaml.safe_dump(plain, allow_unicode=True, sort_keys=False, width=100_000)
    return f"---\ndate: {date.isoformat(timespec='seconds')}\n{block}---\n"


def _plain(value: str) -> str:
    """Return a value without markup: some themes put a title into their page as it is."""
    return printable(" ".join(value.split())).translate(str.maketrans("<>{}", "\u2039\u203a()"))
