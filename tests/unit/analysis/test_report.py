import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from study.analysis.analysis import Analysis, read_analysis, result_of
from study.analysis.caveats.runs import Unsuccessful
from study.analysis.report.step import breakable, content_hash, marked, render, write_page
from study.analysis.step import charts_of, write_analysis
from study.analysis.table.tables import write_csv
from study.analysis.words import three_digits
from study.artifacts.checked import read_records
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.base.files import write_new
from tests.conftest import ROOT, tiny_plan, write_photos
from tests.examples import STUDIES, with_analysis
from tests.timings import table
from tests.unit.analysis.planted import analysis_of, only
from tests.unit.artifacts.test_records import make_record

KEPT = ROOT / "docs" / "example" / "report.html"
FACTORS = {"device": ["cpu", "cuda"], "training.batch_size": [2, 4, 8]}
SCALES = {4: 15.0, 8: 27.0}
"""By batch size."""


def analysed(
    plan: Plan,
    results: Path,
    times: dict[str, float] | None = None,
    outcomes: dict[str, str] | None = None,
    figures: bool = False,
) -> Analysis:
    """Records of the plan's runs, and all that follows from them, under ``results``."""
    for number, run in enumerate(plan.runs):
        if not run.unavailable:
            name = run.name.rsplit("-r", 1)[0]
            outcome, seconds = (outcomes or {}).get(name, "ok"), 1.0 + number / 100
            record = make_record(plan, number, outcome, (times or {}).get(name, seconds))
            write_new(results / plan.name / "records" / run.file, record.model_dump_json())
    return finish(plan, results, figures)


def finish(plan: Plan, results: Path, figures: bool = False) -> Analysis:
    """All that follows from the records that are there. ``figures``: whether they are drawn, which
    takes longest."""
    files = Results(results)
    write_plans([plan], results)
    if figures:
        write_analysis(plan.name, files)
        render([plan.name], results, files.report)
        return read_analysis(files.fit(plan.name))
    result = result_of(files, plan.name)
    write_csv(result.frame, files.timings(plan.name))
    result.epochs.to_csv(files.epochs(plan.name), index=False)
    files.fit(plan.name).write_text(result.analysis.model_dump_json())
    charts = [chart.kept(name, chart.figure) for name, chart in charts_of(result).items()]
    write_page([(result, charts)], results, files.report)
    return result.analysis


def with_gpu(plan: Plan) -> Plan:
    runs = [run.model_copy(update={"unavailable": None}) for run in plan.runs]
    return plan.model_copy(update={"runs": runs})


class Page(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_is_one_file_that_asks_the_network_for_nothing(tmp_path: Path) -> None:
    analysed(tiny_plan(factors=FACTORS, replicates=3), tmp_path, figures=True)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(tmp_path / "report.html")
    assert "src" not in {name for _, attributes in page.tags for name in attributes}
    assert "@import" not in text
    assert "url(" not in text
    links = [str(attributes["href"]) for tag, attributes in page.tags if tag == "a"]
    files = [link for link in links if not link.startswith("#")]
    assert all(link.startswith("tiny/") and (tmp_path / link).exists() for link in files)
    metas = [tag for name, tag in page.tags if name == "meta"]
    (policy,) = (str(tag["content"]) for tag in metas if "http-equiv" in tag)
    (style,), (script,) = (
        re.findall(f"<{name}>(.*?)</{name}>", text, re.DOTALL) for name in ("style", "script")
    )
    assert policy == (
        f"default-src 'none'; style-src '{content_hash(style)}'; "
        f"script-src '{content_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    assert ("html", {"lang": "en"}) in page.tags
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")


def test_every_link_within_the_page_leads_to_a_part_of_it(tmp_path: Path) -> None:
    analysed(tiny_plan(factors=FACTORS, replicates=3), tmp_path)
    tags = Page(tmp_path / "report.html").tags
    parts = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(parts) == len(set(parts))
    links = [str(attributes["href"]) for tag, attributes in tags if tag == "a"]
    assert {link[1:] for link in links if link[0] == "#"} <= set(parts)


def test_a_list_of_all_studies_gives_each_answer_and_the_screen_counts_the_folded_notes(
    tmp_path: Path,
) -> None:
    plans = [
        with_gpu(tiny_plan(factors=FACTORS, replicates=replicates, contrast="device")).model_copy(
            update={"name": f"study-{number}"}
        )
        for number, replicates in enumerate((3, 1, 3, 3), start=1)
    ]
    answers = [analysed(plan, tmp_path, figures=True).answer for plan in plans]
    render([plan.name for plan in plans], tmp_path, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    overview, *articles = text.split("<article")
    for plan, answer, article in zip(plans, answers, articles, strict=True):
        assert f'<a href="#{plan.name}">' in overview
        assert overview.count(str(marked(answer))) == answers.count(answer)
        screen, _, below = article.partition('class="below"')
        counted = re.search(rf'<a href="#{plan.name}-notes">(\d+) ', screen)
        opened = screen.partition("What could change this answer")[2].count("<li>")
        notes = below.partition('<ul class="caveats">')[2].partition("</ul>")[0].count("<li>")
        assert notes == opened + int(counted[1] if counted else 0) > 0


def test_the_committed_page_of_the_example_has_the_means_of_its_tables() -> None:
    """``make example`` writes it, at a release: its words may be those of before."""
    text = Page(KEPT).text
    for name in STUDIES:
        for group in read_analysis(with_analysis(name) / name / "fit.json").groups:
            means = [three_digits(level.time.value) for level in group.levels if level.time]
            assert means and all(mean in text for mean in means)


def test_every_run_is_a_dot_that_leads_to_its_row_and_its_record(tmp_path: Path) -> None:
    plan = tiny_plan(factors={"device": ["cpu"], "training.batch_size": [4, 8]}, replicates=3)
    analysed(plan, tmp_path)
    tags = Page(tmp_path / "report.html").tags
    runs = {f"tiny/{run.name}" for run in plan.runs}
    links = [attributes for tag, attributes in tags if tag == "a"]
    dots = {link["href"] for link in links if "aria-label" in link}
    rows = {attributes["id"] for tag, attributes in tags if tag == "tr" and "id" in attributes}
    assert dots == {f"#run-{run}" for run in runs}
    assert rows >= {f"run-{run}" for run in runs}
    assert {link["href"] for link in links} >= {f"tiny/records/{run.file}" for run in plan.runs}


def test_one_quantity_has_one_number_on_the_page_and_in_its_pictures(tmp_path: Path) -> None:
    """The mean of a setting is the geometric one in its card, each chart, the table and each
    picture."""
    plan = tiny_plan(factors={"device": ["cpu"], "training.batch_size": [4, 8]}, replicates=3)
    times = (2.0, 3.0, 4.6)
    for place, run in enumerate(plan.runs):
        seconds = SCALES[run.settings.training.batch_size] * times[run.block - 1]
        record = make_record(plan, place, fit_seconds=seconds)
        write_new(tmp_path / "tiny" / "records" / run.file, record.model_dump_json())
    finish(plan, tmp_path)
    geometric, arithmetic = float(np.exp(np.log(times).mean())), float(np.mean(times))
    page = Page(tmp_path / "report.html").text.partition("Cost, diagnostics")[0]
    figure = charts_of(result_of(Results(tmp_path), "tiny"))["runs"].figure
    told = {"page": page, "picture": " ".join(one.get_text() for one in figure.axes[0].texts)}
    for name, text in told.items():
        for scale in SCALES.values():
            assert f"{scale * geometric:.1f} s" in text, name
            assert f"{scale * arithmetic:.1f}" not in text, name


def test_a_line_ends_within_a_name_after_a_hyphen_or_an_underscore_alone() -> None:
    assert breakable("bf16-channels_last-r1") == "bf16-<wbr>channels_<wbr>last-<wbr>r1"
    assert breakable("cuda graph + <b>-_x") == "cuda graph + &lt;b&gt;-_<wbr>x"
    assert breakable("") == ""


def test_speedup_pairs_within_blocks(tmp_path: Path) -> None:
    """Blocks that differ by a factor of three leave no trace in the ratio."""
    plan = with_gpu(tiny_plan(factors=FACTORS, replicates=4, contrast="device"))
    rng = np.random.default_rng(0)
    results = tmp_path / "tiny" / "records"
    for number, run in enumerate(plan.runs):
        base = {"cpu": 6.0, "cuda": 2.0}[run.settings.device] * 3.0 ** (run.block % 2)
        base *= rng.normal(1, 0.01)
        write_new(results / run.file, make_record(plan, number, fit_seconds=base).model_dump_json())
    analysis = analysis_of(plan.study, table(plan, read_records(plan, results).included))
    for ratio in analysis.ratios:
        assert ratio.ratio.low is not None
        assert ratio.ratio.high is not None
        assert 2.9 < ratio.ratio.low < ratio.ratio.value < ratio.ratio.high < 3.1


def test_failures_and_absent_devices_are_shown_and_the_rest_is_analysed(tmp_path: Path) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=3)
    analysis = analysed(plan, tmp_path, outcomes={"bs8-cpu": "out_of_memory"}, figures=True)
    assert [level.runs for level in analysis.groups[0].levels] == [3, 3, 0]
    (lost,) = only(Unsuccessful, analysis.warnings)
    assert (lost.outcome, len(lost.runs)) == ("out_of_memory", 3)
    assert "planted" in str(lost.message)
    text = Page(tmp_path / "report.html").text
    assert "out of memory" in text
    assert "6 runs, 3 each; 3 failed: out of memory; no GPU here" in text


def test_a_study_in_which_nothing_succeeded_still_has_a_report(tmp_path: Path) -> None:
    failed = {"bs4-cpu": "failed", "bs8-cpu": "failed"}
    analysed(tiny_plan(replicates=2), tmp_path, outcomes=failed, figures=True)
    assert "No answer: no run has succeeded." in Page(tmp_path / "report.html").text


def test_records_of_a_device_that_is_away_stay_in_the_report(tmp_path: Path) -> None:
    """Measured on a machine with a GPU, looked at on one without."""
    plan = tiny_plan(factors=FACTORS, replicates=3, contrast="device")
    here = with_gpu(plan)
    analysed(here, tmp_path)
    frame = table(plan, read_records(plan, tmp_path / "tiny" / "records").included)
    assert set(frame["outcome"]) == {"ok"}
    assert len(analysis_of(plan.study, frame).ratios) == 3


def test_levels_that_are_paths_are_shown_by_their_names_and_kept_apart(tmp_path: Path) -> None:
    folders = [tmp_path / "secret" / name for name in ("NA", "001")]
    paths = [str(write_photos(folder, {"a": 5, "b": 5})) for folder in folders]
    plan = tiny_plan(
        dataset={"source": "folder", "path": paths[0], "image_size": 32},
        factors={"dataset.path": paths, "training.batch_size": [2, 4]},
        replicates=3,
        contrast="dataset.path",
    )
    analysis = analysed(plan, tmp_path / "results")
    assert [group.label for group in analysis.groups] == ["NA", "001"]
    assert [len(group.levels) for group in analysis.groups] == [2, 2]
    assert [(ratio.slower, ratio.faster) for ratio in analysis.ratios] == [("NA", "001")] * 2
    for name in ("report.html", "tiny/timings.csv"):
        assert "secret" not in (tmp_path / "results" / name).read_text(encoding="utf-8")


def test_names_of_classes_and_studies_cannot_inject_markup(tmp_path: Path) -> None:
    plan = tiny_plan(title="<script>alert(1)</script>", question="Is <b>this</b> safe?")
    analysed(plan, tmp_path)
    page = Page(tmp_path / "report.html")
    assert [tag for tag, _ in page.tags].count("script") == 1  # our own, at the end
    assert "Is <b>this</b> safe?" in page.text
    assert "<script>alert(1)</script>" in page.text
