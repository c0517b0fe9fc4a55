"""What the analysis costs with many records: seconds and memory of each step, and how they grow.

``python -m benchmarks.many_records [--runs 100 1000 10000] [--sizes 5] [--loops 2] [--steps
analyse]`` makes results folders from the records and the telemetry of the committed example, each
record valid and with its own checksum, and runs the steps one after another, each in a process of
its own, as the pipeline does. A size of the study is levels times replicates: 1000 runs are 5 batch
sizes, 2 loops and 100 replicates.
"""

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import Record, checksum
from study.artifacts.run import Run
from study.artifacts.setting import Level, setting_of
from study.base.files import digest
from study.config.settings import Settings, with_values
from study.config.study import Study
from tests.examples import EXAMPLE

ROOT = Path(__file__).parent.parent
NAME, LOOPS = "photographs", ("fastai", "torch")
BLOCKS_A_START = 10
SMALLEST_BATCH, LARGEST_BATCH = 16, 256
STEPS = ("analyse", "report")


@dataclass(frozen=True)
class Template:
    """A record of the example as JSON, the name of its file, and its batch size."""

    content: dict[str, Any]
    file: str
    size: int


@dataclass(frozen=True)
class Cost:
    """What one process took: seconds of CPU and by the clock, and its peak of resident memory in
    bytes."""

    cpu: float
    wall: float
    peak: int


def plan_of(runs: int, sizes: int, loops: Sequence[str]) -> Plan:
    """Return a plan of about so many runs, in blocks, after the example's own."""
    example = Plan.read(EXAMPLE / NAME / "plan.json")
    batches = sorted({round(size) for size in np.geomspace(SMALLEST_BATCH, LARGEST_BATCH, sizes)})
    factors = {"device": ["cuda"], "training.batch_size": batches, "training.loop": list(loops)}
    replicates = max(runs // (len(batches) * len(loops)), 1)
    changes = {
        "factors": factors,
        "replicates": replicates,
        "contrast": "training.loop" if len(loops) > 1 else None,
        "only": [],
        "names": {},
    }
    study = example.study.model_copy(update=changes)
    planned: list[Run] = []
    first = [_run(study, example.runs[0], size, loop) for size, loop in product(batches, loops)]
    for block in range(1, replicates + 1):
        for run in random.Random(block).sample(first, len(first)):
            own = {
                "name": f"{run.setting.short}-r{block}",
                "block": block,
                "position": len(planned) + 1,
            }
            planned.append(run.model_copy(update=own))
    return example.model_copy(update={"study": study, "runs": planned})


def _run(study: Study, like: Run, size: int, loop: str) -> Run:
    factors: dict[str, Level] = {
        "device": "cuda",
        "training.batch_size": size,
        "training.loop": loop,
    }
    values = like.settings.model_dump()
    setting = setting_of(study, factors)
    return like.model_copy(
        update={
            "key": digest(setting.short),
            "settings": Settings.of_values(with_values(values, factors), setting.short),
            "setting": setting,
        }
    )


def templates() -> dict[str, list[Template]]:
    """Return the records of the example with a data loader, by their loop."""
    found: dict[str, list[Template]] = {}
    for path in sorted((EXAMPLE / NAME / "records").glob("*.json")):
        record = Record.of_file(path)
        training = record.settings.training
        if record.settings.loader.kind == "workers":
            one = Template(json.loads(record.model_dump_json()), path.stem, training.batch_size)
            found.setdefault(training.loop, []).append(one)
    return found


def make_results(plan: Plan, root: Path) -> None:
    """Write the plan, and a record with telemetry for each of its runs, as the pipeline leaves
    them."""
    write_plans([plan], root)
    files, known = Results(root), templates()
    for folder in (files.records(plan.name), files.telemetry_folder(plan.name)):
        folder.mkdir(parents=True)
    for run in plan.runs:
        content, samples = record_of(plan, run, known[run.settings.training.loop])
        files.record(plan.name, run.file).write_text(
            json.dumps(content, indent=1, ensure_ascii=False), "utf-8"
        )
        shutil.copyfile(
            EXAMPLE / NAME / "telemetry" / f"{samples}.parquet",
            files.telemetry(plan.name, run.file),
        )


def record_of(plan: Plan, run: Run, known: Sequence[Template]) -> tuple[dict[str, Any], str]:
    """Return the record of a run as JSON, with times of its own, and the name of the samples that
    it has."""
    size, rng = run.settings.training.batch_size, random.Random(run.position)
    nearest = min(abs(math.log(one.size / size)) for one in known)
    chosen = rng.choice([one for one in known if abs(math.log(one.size / size)) == nearest])
    block = random.Random(f"block {run.block}").gauss(0, 0.02)
    factor = math.exp(rng.gauss(0, 0.03) + block) * (chosen.size / size) ** 0.3
    content = _scaled(chosen.content, factor)
    for step in content["measurement"]["steps"]:
        step["images"] = size if step["images"] == chosen.size else step["images"]
    minutes = run.position // 2
    content |= {
        "study": plan.name,
        "run": run.name,
        "key": run.key,
        "session": 1 + (run.block - 1) // BLOCKS_A_START,
        "warmed_up": True,
        "block": run.block,
        "position": run.position,
        "started": f"2026-01-{1 + minutes // 1440:02d}T{minutes // 60 % 24:02d}:{minutes % 60:02d}:"
        f"{30 * (run.position % 2):02d}+00:00",
        "setting": run.setting.model_dump(),
        "settings": json.loads(run.settings.model_dump_json()),
    }
    return content | {"record_sha256": checksum(content)}, chosen.file


def _scaled(value: Any, factor: float, key: str = "") -> Any:
    """Return nested values with every time multiplied by ``factor``."""
    if isinstance(value, dict):
        return {name: _scaled(item, factor, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_scaled(item, factor, key) for item in value]
    return (
        round(value * factor, 7) if isinstance(value, float) and key.endswith("_seconds") else value
    )


def commands(root: Path, study: str) -> dict[str, list[str]]:
    """Return the command of each step, as the workflow's rules have them."""
    files = Results(root)
    return {
        name: [sys.executable, "-m", "study", name, *map(str, rest)]
        for name, rest in {
            "analyse": [study, "--results", root],
            "report": ["--from-tables", study, "--results", root, "--output", files.report],
        }.items()
    }


def cost(command: Sequence[str], folder: Path = ROOT, ends: int = 0, quiet: bool = False) -> Cost:
    """Run a command in ``folder``, and return what it took. Exit where it does not end with the
    code ``ends``."""
    begin = time.perf_counter()
    said = subprocess.DEVNULL if quiet else None
    process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != ends:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return Cost(
        usage.ru_utime + usage.ru_stime, time.perf_counter() - begin, usage.ru_maxrss * 1024
    )


def costs(plan: Plan, root: Path, steps: Sequence[str]) -> Iterator[tuple[str, Cost]]:
    """Make the results folder, and yield what each step took. Exit where a record does not
    count."""
    make_results(plan, root)
    for name, command in commands(root, plan.name).items():
        if name in steps:
            yield name, cost(command)
        if name == "analyse":
            outcomes = pd.read_csv(Results(root).timings(plan.name), usecols=["outcome"])["outcome"]
            if (outcomes != "ok").any() or len(outcomes) != len(plan.runs):
                raise SystemExit(
                    f"{len(plan.runs)} records, but the table has "
                    f"{outcomes.value_counts().to_dict()}"
                )


def main() -> None:
    """Print a row for each step of each size, with the exponent of its growth since the size
    before."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--sizes", type=int, default=5, help="batch sizes")
    parser.add_argument("--loops", type=int, choices=(1, 2), default=2)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument(
        "--folder", type=Path, help="where the results folders go and stay; none: a temporary one"
    )
    options = parser.parse_args()
    print("| runs | step | CPU (s) | wall (s) | memory (MB) | CPU grows as runs to the power of |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        earlier: dict[str, tuple[int, float]] = {}
        for runs in options.runs:
            plan = plan_of(runs, options.sizes, LOOPS[: options.loops])
            root, whole = (options.folder or Path(temporary)) / str(runs), []
            for step, took in costs(plan, root, options.steps):
                whole.append(took)
                _print(len(plan.runs), step, took, earlier)
            cpu, wall = sum(one.cpu for one in whole), sum(one.wall for one in whole)
            together = Cost(cpu, wall, max(one.peak for one in whole))
            _print(len(plan.runs), "all", together, earlier)
            if not options.folder:
                shutil.rmtree(root)


def _print(runs: int, step: str, took: Cost, earlier: dict[str, tuple[int, float]]) -> None:
    before = earlier.get(step)
    power = f"{math.log(took.cpu / before[1]) / math.log(runs / before[0]):.2f}" if before else ""
    print(
        f"| {runs} | {step} | {took.cpu:.1f} | {took.wall:.1f} | {took.peak / 1e6:.0f} | {power} |",
        flush=True,
    )
    earlier[step] = runs, took.cpu


if __name__ == "__main__":
    main()
