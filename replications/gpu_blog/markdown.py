"""Markdown in which a value is shown as text, whatever it holds: no markup, no formula, no template of a site."""

import re
from datetime import datetime

import yaml

SPECIAL = {one: f"&#{ord(one)};" for one in "&<>|*_`[]\\$#~^{}"}
"""What Markdown, HTML, formulas and templates (Liquid) read as more than text, as character references."""


def printable(value: str) -> str:
    """Return ``value`` in one line: what cannot be printed is escaped."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in " ".join(value.split()))


def inline(value: str) -> str:
    """Return ``value`` in one line, to be shown as it is inside a line: a cell, a heading, an item of a list."""
    line = "".join(SPECIAL.get(one, one) for one in printable(value))
    return line.replace("://", "&#58;//").replace("www.", "www&#46;")  # what becomes a link by itself


def paragraph(value: str) -> str:
    """Return ``value`` as a paragraph of its own: what begins a list, a rule or a definition is text, too."""
    line = re.sub(r"^(\d+)([.)])(?=\s|$)", lambda match: f"{match[1]}&#{ord(match[2])};", inline(value))
    return re.sub(r"^[-+=:]", lambda match: f"&#{ord(match[0])};", line)


def front_matter(date: datetime, values: dict[str, str | bool | list[str]]) -> str:
    """Return the block of YAML that a site's generator reads, with ``date`` in the form that all of them know."""
    plain = {key: _plain(value) if isinstance(value, str) else value for key, value in values.items()}
    block = yaml.safe_dump(plain, allow_unicode=True, sort_keys=False, width=100_000)
    return f"---\ndate: {date.isoformat(timespec='seconds')}\n{block}---\n"


def _plain(value: str) -> str:
    """Return a value without markup: some themes put a title into their page as it is."""
    return printable(value).translate(str.maketrans("<>{}", "\u2039\u203a()"))
