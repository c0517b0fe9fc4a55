"""The verb ``blog``: the records that are there in, a folder with a post and its pictures out."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from study.analysis.blog.post import Part, Picture, blog_name, last_start, post
from study.analysis.figures.step import INDEX, write_figures
from study.analysis.now import made_now
from study.analysis.published.claims import published_claims
from study.analysis.stats.analysis import read_analysis
from study.analysis.table.progress import Progress
from study.artifacts.checked import read_records
from study.artifacts.layout import Results
from study.artifacts.plan import read_plan
from study.base.errors import StudyError
from study.base.files import write_whole

LONGEST = 60
"""Letters of the name of a post's file, without its date."""


def write_post(studies: Sequence[str], results: Path, output: Path, say: Callable[[str], None]) -> Path:
    """Write the post about ``studies`` (by default those selected) with its pictures to the folder ``output``.

    Return the path of the post: its name begins with its date, as Jekyll asks for. Other files of the folder stay.
    Raise :class:`StudyError` if no study has a record.
    """
    with made_now(studies, results, say) as (made, found):
        shown = [progress for progress in found if progress.there]
        if not shown:
            raise StudyError("blog: no record can be used; the report names each with the reason")
        parts = [_part(progress, made) for progress in shown]
        for part in parts:
            for one in part.pictures:
                write_whole(output / one.address, (made.figures(part.plan.name) / f"{one.name}.png").read_bytes())
    name = "-".join(progress.study for progress in shown)[:LONGEST]
    target = output / f"{last_start(parts):%Y-%m-%d}-{name}.md"
    write_whole(target, post(parts, published_claims()))
    return target


def _part(progress: Progress, made: Results) -> Part:
    name = progress.study
    plan = read_plan(made.plan(name))
    inputs = (made.plan(name), made.timings(name), made.fit(name), made.records(name), made.telemetry_folder(name))
    write_figures(*inputs, made.figures(name), svg=False)  # a post shows PNG
    return Part(
        plan=plan,
        records=list(read_records(plan, made.records(name)).counted.values()),
        analysis=read_analysis(made.fit(name)),
        pictures=_pictures(made.figures(name), name),
        progress=progress,
    )


def _pictures(folder: Path, study: str) -> list[Picture]:
    """Return the figures that the step ``figures`` listed in ``folder``."""
    listed = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    return [Picture(**one, address=f"images/{study}/{blog_name(one['name'])}.png") for one in listed]
