"""The step ``report``: one self-contained page about every selected study."""

import base64
import json
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from study.analysis.published.claims import examine
from study.analysis.published.table import read_published
from study.analysis.report.context import StudyView, view
from study.analysis.report.resources import resources
from study.analysis.stats.analysis import read_analysis
from study.analysis.table.files import read_csv, read_primers
from study.analysis.wording.caveats import sensitivity_sentence
from study.analysis.wording.steps import step_intervals, step_sentence
from study.analysis.wording.verdict import noise_sentence
from study.analysis.words import bytes_words, coefficients, device_words, law_formula, number, setting_words
from study.artifacts.checked import read_records
from study.artifacts.layout import Results
from study.artifacts.plan import read_plan
from study.base.files import write_whole


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
    plan, folder = read_plan(files.plan(name)), files.figures(name)
    figures = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    for figure in figures:
        data = (folder / f"{figure['name']}.svg").read_bytes()
        figure["source"] = "data:image/svg+xml;base64," + base64.b64encode(data).decode()
    found = read_records(plan, files.records(name))
    return view(
        plan,
        found.counted,
        read_csv(files.timings(name), plan.study),
        read_analysis(files.fit(name)),
        figures,
        read_primers(results),
        found.refused_aside,
    )
