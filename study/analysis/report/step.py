"""The step ``report``: one self-contained page about every selected study."""

import base64
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import TypeAdapter, ValidationError

from study.analysis.published.claims import examine
from study.analysis.published.table import read_published
from study.analysis.report.context import StudyView, view
from study.analysis.report.resources import resources
from study.analysis.stats.analysis import read_analysis
from study.analysis.table.files import read_primers, read_timings
from study.analysis.wording.caveats import sensitivity_sentence
from study.analysis.wording.steps import step_intervals, step_sentence
from study.analysis.wording.verdict import noise_sentence
from study.analysis.words import bytes_words, coefficients, device_words, law_formula, number, setting_words
from study.artifacts.checked import read_records
from study.artifacts.layout import Results
from study.artifacts.plan import read_plan
from study.base.errors import StudyError
from study.base.files import write_whole
from study.base.strict import Strict


class Listed(Strict):
    """A figure in the list of the step ``figures``."""

    name: str
    title: str
    caption: str
    alt: str


LISTED = TypeAdapter(list[Listed])


def render(studies: list[str], results: Path, output: Path) -> None:
    """Write the report on ``studies`` to ``output``, in one piece."""
    environment = Environment(
        loader=PackageLoader("study.analysis.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"number": number, "bytes": bytes_words, "device": device_words}
    environment.filters |= {"resources": resources, "law_formula": law_formula, "coefficients": coefficients}
    environment.filters |= {"setting": setting_words, "sensitivity": sensitivity_sentence}
    environment.filters |= {"step": step_sentence, "step_intervals": step_intervals, "noise": noise_sentence}
    template = environment.get_template("report.html.j2")
    text = template.render(studies=[_read(name, results) for name in studies], claims=examine(read_published()))
    write_whole(output, text)


def _read(name: str, results: Path) -> StudyView:
    files = Results(results)
    plan = read_plan(files.plan(name))
    found = read_records(plan, files.records(name), steps=False)
    return view(
        plan,
        found.counted,
        read_timings(files.timings(name), plan),
        read_analysis(files.fit(name)),
        _figures(files.figures(name)),
        read_primers(results),
        found.refused_aside,
    )


def _figures(folder: Path) -> list[dict[str, str]]:
    """Return the figures that the step ``figures`` listed in ``folder``, each with its picture as a data URL."""
    try:
        listed = LISTED.validate_json((folder / "index.json").read_bytes())
    except ValidationError:
        raise StudyError(
            f"{folder / 'index.json'}: not a valid list of figures; make it with: python -m study figures"
        ) from None
    return [figure.model_dump() | {"source": _as_url(folder / f"{figure.name}.svg")} for figure in listed]


def _as_url(picture: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(picture.read_bytes()).decode()
