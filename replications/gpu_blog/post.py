"""A post like the blog's: ``python -m replications.gpu_blog.post RESULTS OUTPUT [STUDY ...]``.

The sections, tables and figures are the blog's, each under its name there. Where the blog's own number misleads, the
corrected one stands beside it.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import study
from replications.command import run
from replications.gpu_blog.figures import DPI, NAMES, PANELS, blog_name, figures_of
from replications.gpu_blog.markdown import front_matter, inline, paragraph

LONGEST = 60
"""Letters of the name of a post's file, without its date."""


def write_post(results: Path, output: Path, studies: Sequence[str] = ()) -> Path:
    """Write the post about ``studies`` (default: all that have a record) with its pictures to the folder ``output``.

    Return the path of the post: its name begins with its date, as Jekyll asks for. Other files of the folder stay.
    Raise :class:`study.StudyError` if no study has a record.
    """
    opened = study.open(results)
    parts = [part for name in studies or opened.studies if (part := opened[name]).records()]
    if not parts:
        raise study.StudyError(f"{results}: no record can be used; the report names each with the reason")
    pictures = {part.name: _pictures(part, output) for part in parts}
    date = _last_start(parts)
    text = (
        _environment()
        .get_template("post.md.j2")
        .render(
            front=_front(parts, date, [shown for own in pictures.values() for shown in own]),
            parts=parts,
            pictures=pictures,
            claims=[row for part in parts for row in part.claims()],
        )
    )
    target = output / f"{date:%Y-%m-%d}-{'-'.join(part.name for part in parts)[:LONGEST]}.md"
    output.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def _pictures(part: study.StudyResults, output: Path) -> list[dict[str, str]]:
    """Write the figures of a study as PNG, and return what the post says of each."""
    folder = Path("images", part.name)
    (output / folder).mkdir(parents=True, exist_ok=True)
    found, blogs = [], figures_of(part)
    for name, drawn in part.figures().items():
        address = folder / blog_name(name)
        blogs.get(name, drawn.figure).savefig(output / address, dpi=DPI)
        caption = PANELS if name == "telemetry_cuda" and name in blogs else drawn.caption
        words = {"title": drawn.title, "caption": caption, "alt": drawn.alt}
        found.append({"name": name, "address": Markup(quote(str(address)))} | words)  # noqa: S704 - a path, quoted
    return found


def _last_start(parts: Sequence[study.StudyResults]) -> datetime:
    """Return when the last run of a post began: its date, which the records alone decide."""
    found = []
    for record in (record for part in parts for record in part.records().values()):
        with suppress(ValueError, OverflowError):  # the record of another clock, or an edited one
            found.append(datetime.fromisoformat(record.started).astimezone(UTC))
    return max(found, default=datetime.fromtimestamp(0, UTC))


def _front(parts: Sequence[study.StudyResults], date: datetime, pictures: Sequence[dict[str, str]]) -> Markup:
    devices = sorted({record.settings.device for part in parts for record in part.records().values()})
    images = [picture["address"] for picture in pictures if picture["name"] in NAMES]
    values: dict[str, str | bool | list[str]] = {
        "layout": "post",
        "title": ", ".join(part.plan().study.title for part in parts),
        "description": parts[0].answer()[0],
        "categories": ["deep-learning", "hardware", "performance"],
        "tags": [{"cpu": "cpu", "cuda": "gpu"}[device] for device in devices] + ["performance-analysis"],
        "toc": True,
    }
    if any(group.curve for part in parts for group in part.analysis().groups):
        values["use_math"] = True
    if images:
        values["image"] = str(images[0])
    return Markup(front_matter(date, values))  # noqa: S704 - it escapes by itself


def _environment() -> Environment:
    """Return the template's environment: each value is shown as text, unless a filter has made it Markdown."""
    environment = Environment(  # noqa: S701 - the post is Markdown, which `finalize` escapes
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        finalize=lambda value: value if isinstance(value, Markup) else inline(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"paragraph": _paragraph, "seconds": seconds, "number": number}
    environment.filters |= {"interval": interval, "machines": machines}
    return environment


def _paragraph(text: str) -> Markup:
    return Markup(paragraph(text))  # noqa: S704 - it escapes by itself


def number(value: float) -> str:
    """Return a number with three digits."""
    return f"{float(f'{value:.3g}'):g}"


def seconds(value: float) -> str:
    """Return a time."""
    return f"{number(value)} s"


def interval(estimate: object) -> str:
    """Return the 95% interval of a mean; a dash where it has none."""
    low, high = getattr(estimate, "low", None), getattr(estimate, "high", None)
    return "-" if low is None or high is None else f"{number(low)} to {number(high)}"


def machines(part: study.StudyResults) -> dict[str, str]:
    """Return the CPUs, the GPUs and the systems on which the runs of a study were made."""
    found: dict[str, dict[str, None]] = {"CPU": {}, "GPU": {}, "System": {}}
    for record in part.records().values():
        if machine := record.machine:
            found["CPU"][f"{machine.cpu_name} ({machine.cpu_threads} threads)"] = None
            if record.settings.device == "cuda":
                found["GPU"][machine.device_name] = None
            found["System"][f"{machine.system}, {machine.software}"] = None
    return {name: "; ".join(values) for name, values in found.items() if values}


def main(arguments: Sequence[str]) -> int:
    """Write the post, and say where; return the exit code."""
    return run(
        "gpu_blog.post RESULTS OUTPUT [STUDY ...]",
        len(arguments) >= 2,
        lambda: [write_post(Path(arguments[0]), Path(arguments[1]), arguments[2:])],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
