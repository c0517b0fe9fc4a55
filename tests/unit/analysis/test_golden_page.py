"""One golden page: the words of a small report that holds every kind of finding.

Other tests check values and kinds. After a change of words, write the page again, and read the
difference:

    python -m tests.unit.analysis.test_golden_page
"""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import pytest

from study.analysis.analysis import Analysis, result_of
from study.analysis.answers import Answer
from study.analysis.answers.context import Context
from study.analysis.answers.contrast import Contrast, NoRatio, NullControl
from study.analysis.answers.curve import REASONS, CurveFit, Verdict, VerdictKind, VerdictReason
from study.analysis.answers.fastest import CannotSay, Fastest, NothingSucceeded, OnlyLevel
from study.analysis.answers.switches import Combination
from study.analysis.answers.ways import Way, Ways
from study.analysis.caveats import KINDS, Caveat, conditions
from study.analysis.caveats.base import OfSetting
from study.analysis.caveats.conditions import MachineChanged, Missed, NotLearned, Starts, Unlearned
from study.analysis.caveats.runs import (
    DisturbedRuns,
    ExcludedRun,
    ExcludedRuns,
    OutlierRuns,
    RefusedFiles,
    Unsuccessful,
)
from study.analysis.ratios import Ratio
from study.analysis.report.step import write_page
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.laws import Bounds, Fitted
from study.analysis.stats.optimum import Noise
from study.analysis.step import charts_of
from study.analysis.table.exclusions import FIRST, OUTLIER
from study.artifacts.layout import Results
from study.artifacts.machine import Machine
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import DataUsed, Record
from study.artifacts.setting import EVERYWHERE
from study.base.files import write_new
from study.config.times import PHASES
from tests.conftest import TRANSFER, tiny_plan
from tests.unit.analysis.planted import changed, setting, with_measured
from tests.unit.analysis.test_report import with_gpu
from tests.unit.artifacts.test_records import make_record

NUMBER = re.compile(r"-?\d[\d.,]*(e-?\d+)?")
GOLDEN = Path(__file__).with_name("golden_page.txt")
BATCH = "training.batch_size"
CPU = setting(device="cpu")
FASTAI, TORCH = (setting(device="cuda", loop=loop) for loop in ("fastai", "torch"))
TIME, LONE = Estimate(value=9.4567, low=8.58, high=10.4), Estimate(value=9.4567)
TOGETHER = Estimate(value=9.4567, low=8.2, high=10.9)
ALPHA, WIDE = Bounds(low=0.42, high=0.61), Bounds(low=None, high=2.5)
TIGHT = Bounds(low=4.2, high=5.9)
POWER = {"c": 15.0, "alpha": 0.5, "Tmin": 5.0}
MISSING = ("points", "replicates", "equal_times")


def curve(
    kind: VerdictKind, reason: VerdictReason | None = None, alpha: Bounds = ALPHA, **ends: float
) -> CurveFit:
    intervals = {"alpha": alpha, "Tmin": TIGHT, "c": WIDE}
    power = Fitted(coefficients=POWER, intervals=intervals, rss=1.0, aicc=1.0, lack_of_fit_p=0.5)
    return CurveFit(
        observations=25,
        batch_sizes=5,
        spreads={},
        differs_p=0.001,
        models={"power": power},
        alike=["step", "root", "power"],
        best=None,
        verdict=Verdict(kind=kind, reason=reason, **ends),
    )


CURVES = [
    curve("power_law"),
    curve("power_law", alpha=Bounds(low=0.8, high=1.2)),
    *(curve("undetermined" if reason in MISSING else "falls", reason) for reason in REASONS),
    curve("turns", low=32.0, high=128.0),
    curve("turns"),
    curve("flat"),
]


def fastest(**changes: object) -> Fastest:
    plain = Fastest(
        group=FASTAI,
        level=setting(size=64),
        time=TIME,
        tied=[],
        equivalent=[],
        left_out=[],
        ineligible={},
        slower=["128"],
        drift_confounded=False,
        machine_change=1.26,
    )
    return plain.model_copy(update=changes)


LOADER = setting(size=64, kind="workers")
RATIO = Ratio(
    contrast="device",
    at=LOADER,
    x=None,
    slower="cpu",
    faster="cuda",
    ratio=TIME,
    together=TOGETHER,
    one_sided=TIME,
    slower_seconds=45.3,
    faster_seconds=4.79,
)
CONTRAST = Contrast(
    contrast="device",
    slower="cpu",
    faster="cuda",
    least=RATIO,
    most=RATIO.model_copy(update={"at": setting(size=128), "ratio": LONE, "together": LONE}),
    overall=TIME,
    drift_confounded=False,
)
ALONE = RATIO.model_copy(update={"at": EVERYWHERE})
PRECISIONS = {"contrast": "training.precision", "slower": "fp32", "faster": "bf16"}
OF_PRECISION = CONTRAST.model_copy(update=PRECISIONS | {"least": ALONE, "most": ALONE})
FIRST_WAY = Way(group=TORCH, level=setting(size=64), seconds=2.5, times=None)
SECOND_WAY = Way(group=FASTAI, level=setting(size=32), seconds=6.0, times=TIME, slower=True)
WAYS = [
    Ways(base=FASTAI, ways=[FIRST_WAY, SECOND_WAY.model_copy(update={"slower": slower})])
    for slower in (True, False)
]
ANSWERS: list[Answer] = [
    NothingSucceeded(group=None, made=True),
    NothingSucceeded(group=CPU, made=True),
    OnlyLevel(group=setting(device="cuda", precision="fp32"), time=TIME),
    *WAYS,
    Combination(
        group=CPU,
        base=setting(precision="auto"),
        best=setting(precision="bf16, channels_last"),
        times_as_fast=TIME,
    ),
    NoRatio(contrast="device", slower="cpu", faster="cuda"),
    NoRatio(contrast="training.precision", slower="fp32", faster="bf16"),
    CannotSay(
        group=setting(precision="fp32"),
        reasons={"2": "few_runs", "4": "few_runs", "8": "one_block"},
        more_runs=2,
    ),
    CannotSay(
        group=CPU,
        reasons={"16": "one_block", "32": "wide_interval", "64": "not_learned"},
        more_runs=1,
    ),
    CannotSay(group=CPU, reasons={"a": "not_learned", "b": "censored"}, more_runs=None),
    CannotSay(group=CPU, reasons={"a": "few_runs"}, more_runs=1, only=True),
    fastest(
        tied=["32", "128"], equivalent=["32"], left_out=["16"], ineligible={"256": "not_learned"}
    ),
    fastest(ineligible={"256": "not_learned", "512": "censored"}),
    fastest(slower=[]),
    fastest(),
    fastest(tied=["16", "32", "128"], level=setting(precision="fp32", size=64)),
    fastest(drift_confounded=True),
    CONTRAST,
    OF_PRECISION,
    OF_PRECISION.model_copy(update={"drift_confounded": True}),
    NullControl(at=LOADER, ratio=1.031, intervals=4, outside=0),
    NullControl(at=EVERYWHERE, ratio=1.031, intervals=4, outside=1),
    NullControl(at=EVERYWHERE, ratio=1.031, intervals=0, outside=0),
]


FEW, MANY = ["bs16-r1", "bs32-r1"], [f"bs16-r{block}" for block in range(5)]
ON_GPU = setting(device="cuda", size=128)
EXCLUDED = ExcludedRun(setting=setting(size=16), reason=FIRST, seconds=20.0, mean_seconds=12.3)


def unlearned(
    size: int, accuracy: float, reason: Literal["at_chance", "unclear"] = "at_chance"
) -> Unlearned:
    level = setting(size=size)
    own = level.within(TORCH)
    return Unlearned(level=level, setting=own, reason=reason, accuracy=accuracy)


CAVEATS: list[Caveat] = [
    conditions.UnknownWork(),
    conditions.OwnClock(),
    conditions.ShortCommand(seconds=0.05),
    NotLearned(levels=[unlearned(128, 0.57), unlearned(256, 0.51)], everywhere=True),
    NotLearned(levels=[unlearned(128, 0.75, "unclear")], everywhere=False),
    conditions.CensoredSettings(
        missed=[
            Missed(setting=ON_GPU, missed=1, runs=3),
            Missed(setting=setting(size=64), missed=3, runs=3),
        ]
    ),
    conditions.MayLearnLess(
        group=setting(device="cuda"),
        levels=[OfSetting(setting=setting(size=256), value=0.97)],
        best=OfSetting(setting=setting(size=32), value=1.0),
        where=None,
    ),
    conditions.DecodedBefore(prepared=[OfSetting(setting=ON_GPU, value=0.73)]),
    OutlierRuns(setting=setting(size=16), outliers=[20.0], others=[12.2, 12.4, 12.3]),
    OutlierRuns(setting=setting(size=16), outliers=[6.1], others=[12.2, 12.4, 12.3]),
    OutlierRuns(setting=setting(size=16), outliers=[20.0, 21.0], others=[12.2, 12.4, 12.3]),
    ExcludedRuns(runs=[EXCLUDED], of=25),
    ExcludedRuns(runs=[EXCLUDED, EXCLUDED.model_copy(update={"reason": OUTLIER})], of=25),
    Unsuccessful(outcome="out_of_memory", message="the GPU had 2 GiB", runs=FEW),
    Unsuccessful(outcome="failed", message=None, runs=MANY),
    RefusedFiles(
        what="record", files=["bs16-r1.0a1b2c3d.json"], reason="key: '4e5f6a7b' is not allowed"
    ),
    RefusedFiles(
        what="samples",
        files=[f"{name}.parquet" for name in MANY],
        reason="telemetry_sha256: another checksum",
    ),
    DisturbedRuns(
        kinds={"others_cpu_percent": 2}, runs=FEW, measured_again=2, disturbed_again=FEW[:1]
    ),
    DisturbedRuns(kinds={"device_processes": 5}, runs=MANY, measured_again=0, disturbed_again=[]),
    MachineChanged(device="cuda", host=False, fastest_seconds=0.00178, slowest_seconds=0.00254),
    MachineChanged(device="cuda", host=True, fastest_seconds=0.00178, slowest_seconds=0.00254),
    conditions.CarryOver(after=ON_GPU, times=1.104),
    conditions.CarryOver(after=ON_GPU, times=0.962),
    Starts(starts=1, machines=1),
    Starts(starts=2, machines=2),
    Starts(starts=4, machines=1, shifted=[setting(device="cuda")]),
    conditions.RandomWeights(reason="ImageNet weights are not available"),
]
SEEN = [
    Noise(spreads={"noise": 0.012}, blocks=9),
    Noise(spreads={"noise": 0.1, "block": 0.031, "start": 0.2}, blocks=3),
]


SOURCE = {
    "title": "A blog",
    "kind": "blog post",
    "date": "2025-04-16",
    "hardware": "a small GPU",
    "runs": "one run each",
    "address": "https://a.example/blog",
}
ON_CUDA = {"at": {"device": "cuda"}, "source": SOURCE}
SHARES = {16: 50, 32: 90, 64: 60}
CLAIMS = [
    {"claim": "Batch size 128 is the fastest", "best": {BATCH: 128}, **ON_CUDA},
    {
        "claim": "The others reach 50% to 90% of its speed",
        "shares": [{"setting": {BATCH: size}, "percent": part} for size, part in SHARES.items()],
        "of": {BATCH: 128},
        **ON_CUDA,
    },
    {
        "claim": "The GPU is 12 times as fast as the CPU",
        "ratio": 12,
        "slower": {"device": "cpu"},
        "faster": {"device": "cuda"},
        "at": {BATCH: 64},
        "differs": ["photographs there"],
        "source": SOURCE,
    },
    {
        "claim": "It trains in 7 s",
        "seconds": 7,
        "at": {"device": "cuda", BATCH: 128},
        "source": SOURCE,
    },
]


def planned() -> Plan:
    """Four batch sizes on two devices, with a claim of each kind that has a row of its own."""
    factors = {"device": ["cpu", "cuda"], BATCH: [16, 32, 64, 128]}
    data = {"source": "generated", "images": 200, "image_size": 40}
    values = TRANSFER | {"dataset": data, "contrast": "device", "claims": CLAIMS}
    return with_gpu(tiny_plan(**values, factors=factors, replicates=3))


def recorded(plan: Plan, number: int) -> Record:
    """A record whose times follow from its settings, with a little noise; nothing of this machine
    is in it."""
    run = plan.runs[number]
    size, device = run.settings.training.batch_size, run.settings.device
    noise = 1 + 0.01 * (3 * number % 7)
    step = max(0.010, 0.002 + 0.0002 * size) * noise * (10 if device == "cpu" else 1)
    record = make_record(
        plan, number, fit_seconds=noise * (5 + 240 / size) * (10 if device == "cpu" else 1)
    )
    assert record.measurement is not None
    phases = {f"{phase}_seconds": step / len(PHASES) for phase in PHASES}
    measured = with_measured(
        record,
        steps=changed(record.measurement.steps, images=size, **phases),
        epochs=changed(record.measurement.epochs, images=2 * size, accuracy=0.9),
    )
    machine = Machine(
        device_name="a CPU" if device == "cpu" else "a GPU",
        cpu_name="a CPU",
        cpu_cores=8,
        cpu_threads=16,
        cpu_max_mhz=3000.0,
        cpu_governor=None,
        memory_bytes=2**34,
        system="Linux",
        python="3.11.9",
        libraries={"torch": "2.15.0"},
    )
    data = DataUsed(
        source="generated",
        generated=True,
        sha256="0123456789abcdef",
        classes=["a", "b"],
        train_images=16,
        valid_images=40,
        left_out=1,
    )
    seconds = record.measurement.fit_seconds + 9
    found = {"machine": machine, "data": data, "process_seconds": seconds}
    return measured.model_copy(update=found)


def with_every_finding(analysis: Analysis) -> Analysis:
    """The analysis, whose statements and caveats are every kind of finding."""
    groups = [
        group.model_copy(update={"noise": seen})
        for group, seen in zip(analysis.groups, SEEN, strict=True)
    ]
    return analysis.model_copy(update={"answers": ANSWERS, "warnings": CAVEATS, "groups": groups})


def page(results: Path) -> str:
    """The words of the report, a line for each element."""
    plan = planned()
    folder = results / plan.name
    write_plans([plan], results)
    for number, run in enumerate(plan.runs):
        write_new(folder / "records" / run.file, recorded(plan, number).model_dump_json())
    found = result_of(Results(results), plan.name)
    analysis = with_every_finding(found.analysis)
    shown = replace(found, analysis=analysis)
    charts = [chart.kept(name, chart.figure) for name, chart in charts_of(shown).items()]
    write_page([(shown, charts)], results, results / "report.html")
    context = Context(plan.study, analysis.groups)
    told = ["# Every answer", *(answer.text(context) for answer in ANSWERS)]
    told += ["# Every verdict on a curve", *(one.text() for one in CURVES), "# The terminal"]
    told += analysis.screen.lines(analysis.answer, analysis.claims)
    words = Words((results / "report.html").read_text(encoding="utf-8")).text().rstrip()
    return "\n".join([words, *told]) + "\n"


INLINE = {"tspan", "wbr", "strong", "b", "i", "em", "small", "code", "a"}


class Words(HTMLParser):
    """The text of a page: a line for each row of a table, and for each other element that does not
    only part words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.style = self.cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.style = tag in ("style", "script")
        self.cell = tag in ("td", "th") or (self.cell and tag == "span")
        if tag not in INLINE and not (self.cell and tag == "span"):
            self.parts.append(" | " if self.cell else "\n")

    def handle_endtag(self, tag: str) -> None:
        self.style = False
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if not self.style:
            self.parts.append(re.sub(r"\s+", " ", data))

    def text(self) -> str:
        """Return the lines that hold words; in tables numbers are ``#``, and rows that are then
        equal are one."""
        lines = (re.sub(r" +", " ", line).strip() for line in "".join(self.parts).splitlines())
        blocks = groupby(
            (line for line in lines if line.strip("| ")), key=lambda line: line.startswith("|")
        )
        return "\n".join(
            line
            for in_table, block in blocks
            for line in (
                dict.fromkeys(NUMBER.sub("#", row) for row in block) if in_table else block
            )
        )


@pytest.mark.parametrize(("union", "examples"), [(Answer, ANSWERS), (Caveat, CAVEATS)])
def test_every_kind_of_finding_stands_on_the_golden_page(
    union: object, examples: list[object]
) -> None:
    assert set(get_args(get_args(union)[0])) == {type(example) for example in examples}
    assert set(get_args(VerdictKind)) == {one.verdict.kind for one in CURVES}


def test_a_caveat_says_what_it_is_and_what_it_does_in_thirty_words_each_and_none_is_forgotten_on_the_way() -> (
    None
):
    for caveat in CAVEATS:
        for told in (caveat.text(), f"{caveat.effect()} {caveat.advice()}"):
            assert len(told.split()) <= 30
        assert not caveat.text().endswith(".")
    assert set(KINDS) == set(map(type, CAVEATS))


def test_the_page_says_what_the_golden_page_says(tmp_path: Path) -> None:
    assert page(tmp_path).splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        GOLDEN.write_text(page(Path(folder)), encoding="utf-8")
