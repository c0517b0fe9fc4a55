"""One self-contained page about some studies: the step ``report``, and the page of what the records
give at any time.

The latter writes nothing else that belongs to the workflow, so that the next start makes its own
from the whole.
"""

import base64
import functools
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from pydantic import TypeAdapter, ValidationError

from study.analysis.analysis import StudyResult, kept_result, result_of
from study.analysis.figures.style import Kept
from study.analysis.report.content import (
    level_row,
    noise_words,
    progress_of,
    progress_sentence,
    resources,
    view,
)
from study.analysis.step import INDEX, charts_of
from study.analysis.words import (
    bytes_words,
    coefficients,
    device_words,
    isolate_bidi,
    law_formula,
    number,
    place_words,
    setting_words,
)
from study.artifacts.block import page_made_of
from study.artifacts.layout import Results
from study.artifacts.plan import selected
from study.base.errors import StudyError
from study.base.files import write_whole

CHARTS = TypeAdapter(list[Kept])
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters, which a terminal that prints the page would obey."""


def render(studies: list[str], results: Path, output: Path) -> None:
    """Write the report on ``studies`` to ``output`` from their tables and analyses in the folder
    ``results``."""
    files = Results(results)
    found = []
    for name in dict.fromkeys(studies):
        result, index = kept_result(files, name), files.figures(name) / INDEX
        try:
            charts = CHARTS.validate_json(index.read_bytes())
        except (OSError, ValidationError):
            why = f"not a valid list of charts; make it with: python -m study analyse {name}"
            raise StudyError(f"{index}: {why}") from None
        found.append((result, charts))
    write_page(found, results, output)
    if output.resolve() == files.report.resolve():
        write_whole(files.report_made_of, page_made_of(studies, files))


def report_now(
    studies: Sequence[str],
    results: Path,
    output: Path,
    say: Callable[[str], None],
    linked: Path | None = None,
) -> None:
    """Write a page about ``studies`` (by default those selected) to ``output`` from the records
    that are there.

    Its links lead to ``linked``, else ``results``. ``say`` gets the lines for the terminal: first
    how far the studies are. A study without a plan is left out with a line. Raise
    :class:`StudyError` if no study has a record.
    """
    files = Results(results)
    found = []
    refused = {}
    for name in dict.fromkeys(studies or selected(results)):
        try:
            found.append(result_of(files, name))
        except StudyError as error:
            refused[name] = str(error)
    if not found:
        raise StudyError("; ".join(refused.values()))
    progress = [progress_of(one.plan, one.frame) for one in found]
    gaps = [f"{one.study}: {one.missing}" for one in progress if not one.whole]
    left_out = [f"{name} is left out: {reason}" for name, reason in refused.items()]
    if not any(one.there or one.refused for one in progress):
        raise StudyError(f"results: no run is there yet. {' '.join([*gaps, *left_out])}")
    for line in (progress_sentence(progress), *gaps, *left_out):
        say(line)
    drawn = []
    for one in found:
        charts = charts_of(one).items()
        drawn.append((one, [chart.kept(name, chart.figure) for name, chart in charts]))
    write_page(drawn, linked or results, output)
    if output.resolve() == files.report.resolve():
        files.report_made_of.unlink(missing_ok=True)  # the next start makes the page of the whole


def write_page(found: Sequence[tuple[StudyResult, list[Kept]]], linked: Path, output: Path) -> None:
    """Write the report on some studies with their charts to ``output``, in one piece; its links
    lead to the folder ``linked``."""
    views = []
    for result, charts in found:
        folder = quote(os.path.relpath(linked / result.plan.name, output.parent))
        views.append(view(result.plan, result.frame, result.analysis, charts, folder))
    template = templates().get_template
    text = template("report.html.j2").render(
        studies=views,
        unfinished=None
        if all(view.progress.whole for view in views)
        else progress_sentence([v.progress for v in views]),
        style=template("report.css").render(),
        script=template("report.js").render(),
    )
    write_whole(output, UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text))


@functools.cache
def templates() -> Environment:
    """Return the templates of the page, with their filters; each is compiled once a process."""
    environment = Environment(
        loader=PackageLoader("study.analysis.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_finalize,
    )
    named = (
        number,
        bytes_words,
        device_words,
        place_words,
        setting_words,
        law_formula,
        coefficients,
        resources,
        level_row,
        noise_words,
        marked,
        prose,
        breakable,
        content_hash,
    )
    environment.filters |= {function.__name__: function for function in named}
    return environment


INTERVAL = re.compile(r"(\((?:95%[a-z ]*: )?[\d.]+ to [\d.]+\))")
UNIT = re.compile(r"(?<=\d) (?=(?:s|ms|min|h|px|points|times)\b)")


def marked(text: str) -> Markup:
    """Return an answer with what stands between ``**`` as strong, and its intervals muted; the tags
    are our own."""
    return _tagged(text.split("**"), "<strong>{}</strong>", _muted)


def _muted(text: str) -> Markup:
    return _tagged(INTERVAL.split(text), '<span class="sure">{}</span>', _escaped)


def prose(text: str) -> Markup:
    """Return a sentence with what stands between backticks as code."""
    return _tagged(text.split("`"), "<code>{}</code>", _escaped)


def _tagged(parts: Sequence[str], tag: str, words: Callable[[str], Markup]) -> Markup:
    """Return the words of parts of a text, of which every second stands in a tag."""
    return Markup("").join(
        Markup(tag).format(words(part)) if at % 2 else words(part)  # noqa: S704
        for at, part in enumerate(parts)
    )


def _escaped(text: str) -> Markup:
    """Return a text whose numbers keep their units in one line."""
    return escape(isolate_bidi(UNIT.sub("\N{NO-BREAK SPACE}", text)))


def content_hash(text: str) -> str:
    """Return what a content security policy calls a script or a style of the page itself."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def breakable(name: str) -> Markup:
    """Return a name that a line may end in after a hyphen or an underscore, and nowhere else."""
    return Markup("<wbr>").join(map(escape, re.findall(r"[^-_]*[-_]+|[^-_]+$", isolate_bidi(name))))


def _finalize(value: object) -> object:
    """Return a value as the page shows it; markup has been through this."""
    return (
        isolate_bidi(value) if isinstance(value, str) and not isinstance(value, Markup) else value
    )
