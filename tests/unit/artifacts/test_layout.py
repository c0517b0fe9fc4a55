"""Every path under a results folder has one source."""

import re

from study.artifacts.layout import Results
from tests.conftest import ROOT

FILES = Results()
LAYOUT = {
    str(path)
    for path in (
        FILES.selection,
        FILES.report,
        FILES.image("{image}"),
        FILES.manifest("{dataset}"),
        FILES.plan("{study}"),
        FILES.weights("{study}", "{weights}"),
        FILES.records("{study}"),
        FILES.block("{study}", "{block}"),
        FILES.timings("{study}"),
        FILES.fit("{study}"),
        FILES.figures("{study}"),
        FILES.telemetry_folder("{study}"),
        FILES.log("data", "{dataset}"),
        FILES.log("images", "{image}"),
        FILES.log("{study}", "weights", "{weights}"),
        FILES.log("{study}", "block-{block}"),
        FILES.log("{study}", "analyse"),
        FILES.log("report"),
    )
}


def test_the_workflows_rules_name_the_files_as_the_steps_do() -> None:
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    named = {re.sub(r"wildcards\.", "", text) for text in re.findall(r'results/[^"\s]+', rules)}
    named = {re.sub(r"\{(FLOW)[^}]*\}", "{study}", text) for text in named}
    assert named
    assert named <= LAYOUT


def test_the_samples_of_a_run_have_the_name_of_its_record() -> None:
    assert str(FILES.telemetry("tiny", "bs4-r1.0a1b2c3d.json")) == "results/tiny/telemetry/bs4-r1.0a1b2c3d.parquet"
