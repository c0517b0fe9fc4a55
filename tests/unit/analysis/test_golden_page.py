"""One golden page: the words of a small report that holds every kind of finding.

Other tests check values and kinds. After a change of words, write the page again, and read the difference:

    python -m tests.unit.analysis.test_golden_page
"""

import json
import re
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest

from study.analysis.analysis import Analysis, analyse
from study.analysis.report.step import render
from study.analysis.stats import findings
from study.analysis.stats.equivalence import Sensitivity
from study.analysis.stats.findings import Answer, Caveat, OfSetting, Verdict
from study.analysis.stats.fits import Bounds
from study.analysis.stats.usable import Estimate
from study.analysis.table.exclusions import FAR, FIRST
from study.analysis.table.files import read_csv, write_csv
from study.analysis.table.rows import table
from study.analysis.wording.answer import answer_sentence
from study.analysis.wording.caveats import caveat_sentence
from study.analysis.wording.verdict import verdict_sentence
from study.artifacts.checked import read_records
from study.artifacts.machine import Machine
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import DataUsed, Record
from study.artifacts.samples import PHASES
from study.artifacts.setting import EVERYWHERE, Setting
from study.base.files import write_new
from tests.conftest import TRANSFER, tiny_plan
from tests.unit.analysis.planted import setting
from tests.unit.analysis.test_report import with_gpu
from tests.unit.artifacts.test_records import make_record

NUMBER = re.compile(r"-?\d[\d.,]*(e-?\d+)?")
GOLDEN = Path(__file__).with_name("golden_page.txt")
BATCH = "training.batch_size"
TIME, LONE = Estimate(value=9.4567, low=8.58, high=10.4), Estimate(value=9.4567, low=None, high=None)
TOGETHER = Estimate(value=9.4567, low=8.2, high=10.9)
ALPHA, WIDE, TIGHT = Bounds(low=0.42, high=0.61), Bounds(low=None, high=2.5), Bounds(low=4.2, high=5.9)
INVERSE, POWER = {"T0": 5.1, "A": 243.0}, {"c": 15.0, "alpha": 0.5, "Tmin": 5.0}

VERDICTS: list[Verdict] = [
    findings.TooFewPoints(),
    findings.Unreplicated(law=None),
    findings.Unreplicated(law="inverse"),
    findings.EqualTimes(),
    findings.Drifted(machine_change=1.4, level_change=1.05),
    findings.NoDifference(),
    findings.NoLaw(),
    findings.PowerLaw(coefficients=POWER, intervals={"alpha": ALPHA, "Tmin": TIGHT, "c": WIDE}, inverse_fits=False),
    findings.PowerLaw(coefficients=POWER, intervals={"alpha": ALPHA, "Tmin": TIGHT, "c": WIDE}, inverse_fits=True),
    findings.PowerLaw(
        coefficients=POWER, intervals={"alpha": Bounds(low=0.8, high=1.2), "Tmin": TIGHT, "c": WIDE}, inverse_fits=True
    ),
    findings.Turn(low=32.0, high=128.0),
    findings.Rise(),
    findings.Zigzag(),
    findings.OtherLaw(
        law="inverse",
        coefficients=INVERSE,
        intervals={"T0": TIGHT, "A": WIDE},
        doubt="another_law",
        misses=None,
        alpha_interval=ALPHA,
    ),
    findings.OtherLaw(
        law="hinge",
        coefficients={"bend": 5.26},
        intervals={"bend": TIGHT},
        doubt="lack_of_fit",
        misses=0.042,
        alpha_interval=ALPHA,
    ),
    findings.OtherLaw(
        law="rise",
        coefficients=INVERSE,
        intervals={"T0": TIGHT, "A": WIDE},
        doubt="another_law",
        misses=None,
        alpha_interval=None,
    ),
    findings.OtherLaw(
        law="power", coefficients=POWER, intervals={}, doubt="untested", misses=None, alpha_interval=None
    ),
    findings.OtherLaw(
        law="power", coefficients=POWER, intervals={}, doubt="wide_interval", misses=None, alpha_interval=WIDE
    ),
]


def fastest(**changes: object) -> findings.Fastest:
    plain = findings.Fastest(
        group=setting(device="cuda", loop="fastai"),
        factor=BATCH,
        level=setting(size=64),
        time=TIME,
        accuracy=None,
        tied=[],
        equivalent=[],
        left_out=[],
        unfair={},
        slower=["128"],
        missing=[],
        machine=None,
        machine_change=1.26,
        curve=None,
    )
    return plain.model_copy(update=changes)


LOADER = setting(size=64, kind="workers")
RATIO = findings.RatioAt(at=LOADER, ratio=TIME, together=TOGETHER, slower_seconds=45.3, faster_seconds=4.79)
CONTRAST = findings.Contrast(
    contrast="device",
    slower="cpu",
    faster="cuda",
    least=RATIO,
    most=findings.RatioAt(at=setting(size=128), ratio=LONE, together=LONE, slower_seconds=37.6, faster_seconds=3.98),
    differs=[
        findings.Difference(what="threads", at=EVERYWHERE, slower=16.0, faster=1.0),
        findings.Difference(what="workers", at=LOADER, slower=16.0, faster=4.0),
        findings.Difference(what="precision", at=EVERYWHERE, slower="fp32", faster="bf16"),
        findings.Difference(what="images", at=setting(size=128), slower=3264.0, faster=3072.0),
        findings.Difference(what="accuracy", at=LOADER, slower=0.9, faster=0.5),
    ],
    explained=[LOADER],
    unclear=[LOADER, setting(size=128)],
    alone=[setting(size=256)],
)
OF_PRECISION = findings.Contrast(
    contrast="training.precision",
    slower="fp32",
    faster="bf16",
    least=RATIO.model_copy(update={"at": EVERYWHERE}),
    most=RATIO.model_copy(update={"at": EVERYWHERE}),
    differs=[],
    explained=[],
    unclear=[EVERYWHERE],
)
BOTTLENECK = findings.Bottleneck(
    at=setting(device="cuda"), loader_seconds=5.0, training_seconds=0.5, both_seconds=5.2, limit="loader"
)
ANSWERS: list[Answer] = [
    findings.NothingSucceeded(group=None),
    findings.NothingSucceeded(group=setting(device="cpu")),
    findings.OnlyLevel(group=setting(device="cuda", precision="fp32"), time=TIME),
    findings.Ways(
        base=setting(device="cuda", loop="fastai"),
        ways=[
            findings.Way(
                group=setting(device="cuda", loop="torch"),
                factor=BATCH,
                level=setting(size=64),
                seconds=2.5,
                times=None,
            ),
            findings.Way(
                group=setting(device="cuda", loop="fastai"),
                factor=BATCH,
                level=setting(size=32),
                seconds=6.0,
                times=TIME,
            ),
        ],
        without=[setting(device="cpu", loop="torch")],
    ),
    findings.Combination(
        group=setting(device="cpu"),
        base=setting(precision="auto"),
        best=setting(precision="bf16, channels_last"),
        times_as_fast=TIME,
    ),
    findings.NoRatio(contrast="device", slower="cpu", faster="cuda"),
    findings.NoRatio(contrast="training.precision", slower="fp32", faster="bf16"),
    findings.CannotSay(
        group=setting(precision="fp32"),
        factor="loader.workers",
        reasons={"2": "few_runs", "4": "few_runs", "8": "one_block"},
        more_runs=2,
    ),
    findings.CannotSay(
        group=setting(device="cpu"),
        factor=BATCH,
        reasons={"16": "outside_runs", "32": "wide_interval", "64": "not_learned"},
        more_runs=1,
    ),
    findings.CannotSay(
        group=setting(device="cpu"), factor=None, reasons={"a": "not_learned", "b": "censored"}, more_runs=None
    ),
    findings.CannotSay(group=setting(device="cpu"), factor=None, reasons={"a": "few_runs"}, more_runs=1, only=True),
    fastest(tied=["32", "128"], equivalent=["32"], left_out=["16"], unfair={"256": "not_learned"}),
    fastest(unfair={"256": "not_learned", "512": "censored"}, missing=["16"]),
    fastest(slower=[]),
    fastest(),
    fastest(accuracy=0.79),
    fastest(tied=["16", "32", "128"], factor=None, level=setting(precision="fp32", size=64)),
    fastest(machine="explains"),
    fastest(machine="unclear"),
    *(fastest(tied=["32"], curve=verdict) for verdict in VERDICTS),
    CONTRAST,
    OF_PRECISION,
    BOTTLENECK,
    BOTTLENECK.model_copy(update={"at": setting(size=64), "limit": "training", "training_seconds": 50.0}),
    BOTTLENECK.model_copy(update={"at": EVERYWHERE, "limit": "both"}),
    BOTTLENECK.model_copy(update={"limit": None}),
    findings.NullControl(at=LOADER, ratio=1.031, intervals=4, outside=0),
    findings.NullControl(at=EVERYWHERE, ratio=1.031, intervals=4, outside=1),
    findings.NullControl(at=EVERYWHERE, ratio=1.031, intervals=0, outside=0),
]


def on_gpu(size: int) -> Setting:
    """A batch size on the GPU."""
    return setting(device="cuda", size=size)


FEW, MANY = ["bs16-r1", "bs32-r1"], [f"bs16-r{block}" for block in range(5)]
CAVEATS: list[Caveat] = [
    findings.Unsuccessful(outcome="out_of_memory", message="the GPU had 2 GiB", runs=FEW),
    findings.Unsuccessful(outcome="failed", message=None, runs=MANY),
    findings.RefusedRecords(
        files=["bs16-r1.0a1b2c3d.json"], reason="key: '4e5f6a7b' is not allowed: the plan has '0a1b2c3d'"
    ),
    findings.RefusedRecords(
        files=[f"{name}.0a1b2c3d.json" for name in MANY],
        reason="schema_version: 2 is not allowed: another version of this software wrote the file",
    ),
    findings.RefusedSamples(
        files=[f"{name}.0a1b2c3d.parquet" for name in FEW],
        reason="telemetry_sha256: the file has another checksum than the record names",
    ),
    findings.DisturbedRuns(
        kinds={"others_cpu_percent": 2, "steal_percent": 1}, runs=FEW, measured_again=2, disturbed_again=FEW[:1]
    ),
    findings.DisturbedRuns(kinds={"device_processes": 5}, runs=MANY, measured_again=5, disturbed_again=[]),
    findings.BrokenBlocks(blocks=[2], records=1),
    findings.BrokenBlocks(blocks=[2, 4], records=3),
    findings.Censored(
        missed=[
            findings.Missed(setting=on_gpu(128), missed=1, runs=3),
            findings.Missed(setting=on_gpu(256), missed=3, runs=3),
        ]
    ),
    findings.NotLearned(
        reason="at_chance",
        accuracies=[OfSetting(setting=on_gpu(128), value=0.57), OfSetting(setting=on_gpu(256), value=0.51)],
        beside=0.5,
        margin=0.02,
        few_runs=True,
    ),
    findings.NotLearned(
        reason="below_best",
        accuracies=[OfSetting(setting=setting(size=128), value=0.7)],
        beside=0.95,
        margin=0.025,
        few_runs=False,
    ),
    findings.NotLearned(
        reason="unclear",
        accuracies=[OfSetting(setting=setting(size=128), value=0.75)],
        beside=0.5,
        margin=0.02,
        few_runs=False,
    ),
    findings.FewReplicates(replicates=2),
    findings.SeveralStarts(starts=4),
    findings.SeveralMachines(machines=2),
    findings.MixedSoftware(software=["torch 2.11.0", "torch 2.15.0"]),
    findings.MixedWeights(weights=["imagenet", "random"]),
    findings.UnrepeatedTraining(device="cuda", weights=2),
    findings.MixedImages(device="cuda", images=["0123456789ab", "ba9876543210"]),
    findings.DecodedBefore(others=["workers"]),
    findings.DecodedBefore(others=["workers", "threads"]),
    findings.UnequalCircumstances(
        what="threads", device="cuda", factor="training.loop", counts={"fastai": 16, "torch": 1}
    ),
    findings.UnequalCircumstances(what="workers", device="cpu", factor=None, counts={"fewest": 2, "most": 4}),
    findings.SharedGpu(runs=3),
    findings.BusyMachine(percent=25, runs=2),
    findings.Throttled(runs=2, reasons=["power cap", "thermal slowdown"]),
    findings.MixedMachines(device="cuda", names=["NVIDIA A100", "NVIDIA H200"]),
    findings.MachineChanged(device="cuda", host=False, fastest_seconds=0.00178, slowest_seconds=0.00254),
    findings.MachineChanged(device="cuda", host=True, fastest_seconds=0.00178, slowest_seconds=0.00254),
    findings.SeparateStarts(factor=BATCH, sets=[["16", "32"], ["512"]]),
    findings.WideSpread(
        limit=0.1, spreads=[OfSetting(setting=on_gpu(16), value=0.25), OfSetting(setting=on_gpu(32), value=0.44)]
    ),
    findings.ExcludedRuns(
        runs=[
            findings.SetAsideRun(
                run="bs16-r1",
                setting=setting(size=16),
                reason=FIRST,
                seconds=20.0,
                mean_seconds=12.3,
                warm_up_seconds=10.1,
                usual_warm_up_seconds=1.6,
            ),
            findings.SetAsideRun(
                run="bs32-r2",
                setting=setting(size=32),
                reason=FAR,
                seconds=14.0,
                mean_seconds=None,
                warm_up_seconds=None,
                usual_warm_up_seconds=None,
            ),
        ],
        of=25,
    ),
    findings.UnequalWork(least_images=3072, most_images=3264, causes=["partial_batch"]),
    findings.UnequalWork(least_images=3072, most_images=6144, causes=["epochs", "data"]),
    findings.UnequalWork(least_images=3072, most_images=6144, causes=[]),
    findings.WholeBatch(batch_size=256, images=200),
    findings.NoSteadyStep(batch_sizes=[128, 256]),
    findings.WaitsForData(device="cuda", batch_sizes=[256]),
    findings.NeverSteady(runs=FEW),
    findings.SlowSteps(steps=6, runs=MANY),
    findings.AboveCeiling(runs=FEW, share=3.29),
    findings.Drift(change=1.3, p=0.012),
    findings.Drift(change=0.8, p=0.0001),
]
SEEN = [
    Sensitivity(smallest_ratio=1.03, spreads={"noise": 0.012}, margin=0.05, blocks=9, blocks_for_margin=5),
    Sensitivity(
        smallest_ratio=1.2,
        spreads={"noise": 0.1, "block": 0.031, "start": 0.2},
        margin=0.05,
        blocks=3,
        blocks_for_margin=None,
    ),
]


def planned() -> Plan:
    """Four batch sizes on two devices, beside a published document."""
    factors = {"device": ["cpu", "cuda"], BATCH: [16, 32, 64, 128]}
    data = {"source": "generated", "images": 200, "image_size": 40}
    values = TRANSFER | {"dataset": data, "factors": factors, "contrast": "device", "published": "gpu_blog"}
    return with_gpu(tiny_plan(**values, replicates=3))


def recorded(plan: Plan, number: int) -> Record:
    """A record whose times follow from its settings, with a little noise; nothing of this machine is in it."""
    run = plan.runs[number]
    size, device = run.settings.training.batch_size, run.settings.device
    noise = 1 + 0.01 * (3 * number % 7)
    step = max(0.010, 0.002 + 0.0002 * size) * noise * (10 if device == "cpu" else 1)
    record = make_record(plan, number, fit_seconds=noise * (5 + 240 / size) * (10 if device == "cpu" else 1))
    assert record.measurement is not None
    phases = {f"{phase}_seconds": step / len(PHASES) for phase in PHASES}
    measured = record.measurement.model_copy(
        update={
            "steps": [one.model_copy(update=phases | {"images": size}) for one in record.measurement.steps],
            "epochs": [
                one.model_copy(update={"images": 2 * size, "accuracy": 0.9}) for one in record.measurement.epochs
            ],
        }
    )
    machine = Machine(
        device_name="a CPU" if device == "cpu" else "a GPU", cpu_name="a CPU", cpu_cores=8, cpu_threads=16,
        cpu_max_mhz=3000.0, cpu_governor=None, memory_bytes=2**34, system="Linux", python="3.11.9",
        libraries={"torch": "2.15.0"},
    )  # fmt: skip
    data = DataUsed(
        source="generated", generated=True, sha256="0123456789abcdef", classes=["a", "b"], train_images=16,
        valid_images=40, left_out=1,
    )  # fmt: skip
    found = {"measurement": measured, "machine": machine, "data": data, "process_seconds": measured.fit_seconds + 9}
    return record.model_copy(update=found)


def with_every_finding(analysis: Analysis) -> Analysis:
    """The analysis, whose statements and caveats are every kind of finding."""
    groups = [group.model_copy(update={"sensitivity": seen}) for group, seen in zip(analysis.groups, SEEN, strict=True)]
    return analysis.model_copy(update={"answer": ANSWERS, "warnings": CAVEATS, "groups": groups})


def page(results: Path) -> str:
    """The words of the report, a line for each element."""
    plan = planned()
    folder = results / plan.name
    write_plans([plan], results)
    for number, run in enumerate(plan.runs):
        write_new(folder / "records" / run.file, recorded(plan, number).model_dump_json())
    records = read_records(plan, folder / "records")
    write_csv(table(plan, records.included), folder / "timings.csv")
    analysis = with_every_finding(analyse(plan, read_csv(folder / "timings.csv", plan.study), records))
    (folder / "fit.json").write_text(analysis.model_dump_json())
    (folder / "figures").mkdir()
    (folder / "figures" / "index.json").write_text(json.dumps([]))
    render([plan.name], results, results / "report.html")
    return Words((results / "report.html").read_text(encoding="utf-8")).text().rstrip() + "\n"


class Words(HTMLParser):
    """The text of a page: a line for each row of a table, and for each other element that does not only part words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.style = self.cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.style = tag in ("style", "script")
        self.cell = tag in ("td", "th") or (self.cell and tag == "span")
        if tag not in ("tspan", "wbr") and not (self.cell and tag == "span"):
            self.parts.append(" | " if self.cell else "\n")

    def handle_endtag(self, tag: str) -> None:
        self.style = False
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if not self.style:
            self.parts.append(" ".join(data.split()) + " " * data.endswith(" "))

    def text(self) -> str:
        """Return the lines that hold words; in tables numbers are ``#``, and rows that are then equal are one."""
        lines = (re.sub(r" +", " ", line).strip() for line in "".join(self.parts).splitlines())
        blocks = groupby((line for line in lines if line.strip("| ")), key=lambda line: line.startswith("|"))
        return "\n".join(
            line
            for in_table, block in blocks
            for line in (dict.fromkeys(NUMBER.sub("#", row) for row in block) if in_table else block)
        )


@pytest.mark.parametrize(
    ("union", "examples", "sentence"),
    [
        (Verdict, VERDICTS, verdict_sentence),
        (Answer, ANSWERS, answer_sentence),
        (Caveat, CAVEATS, caveat_sentence),
    ],
)  # fmt: skip
def test_every_kind_of_finding_has_a_sentence_and_stands_on_the_golden_page(
    union: object, examples: list[object], sentence: object
) -> None:
    kinds = set(get_args(get_args(union)[0]))
    assert kinds == {type(example) for example in examples}
    assert kinds <= set(sentence.registry)  # type: ignore[attr-defined]


def test_at_most_three_caveats_are_open_however_many_there_are_and_the_others_are_folded(tmp_path: Path) -> None:
    page(tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    section = text.partition("Caveats, most important first")[2].partition("</section>")[0]
    shown, _, folded = section.partition("<details>")
    counts = [part.count("What it does to the answer:") for part in (shown, folded)]
    kinds = {caveat.kind for caveat in CAVEATS}
    assert counts == [3, len(kinds) - 3]
    assert "<details" not in shown
    assert "</details>" in folded


def test_the_page_says_what_the_golden_page_says(tmp_path: Path) -> None:
    assert page(tmp_path).splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        GOLDEN.write_text(page(Path(folder)), encoding="utf-8")
