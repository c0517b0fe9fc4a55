"""What a run's process takes beyond its training: forked and fresh, of one process and of two.

    python -m benchmarks.starting --device cpu --pairs 10

A tiny network trains on drawn digits, as the launcher starts it, without Snakemake, containers and the reference
workload. The order of the sides is drawn in each round. Printed: the median of each side's seconds from the start of
its process to its end, less those of its training, and what the training took; fresh over forked, as the median of the
rounds with an exact 95% interval; and the state of the machine. A run of two processes on a CPU meets over gloo, on
GPUs over nccl.
"""

import argparse
import os
import random
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.instrumentation import ratio
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record_store import Session
from study.base import devices
from study.base.devices import usable_cpus
from study.config.study import Evidence, Study
from study.host.engine.engine_choice import EngineChoice
from study.host.fork_servers import start_fork_servers
from study.host.plan.make import make_plan
from study.host.steps.attempt import RunContext, attempt
from study.host.steps.prepare import make_dataset, prepare_weights

STRATEGIES = {1: "single", 2: "ddp"}


def planned(device: str, processes: int, results: Path) -> dict[str, Plan]:
    """The plan of one run a side, with its data and its decision about weights made in ``results``."""
    plans = {}
    for started in ("fresh", "forked"):
        values: dict[str, Any] = {
            "title": "Starting",
            "question": "What does a process take beyond its training?",
            "process": started,
            "dataset": {"source": "generated", "images": 640, "channels": 1, "image_size": 28, "classes": 2},
            "model": {"name": "replications.mnist_report.networks:mnist_cnn", "weights": "none"},
            "training": {"loop": "torch", "freeze_epochs": 0, "epochs": 2, "batch_size": 64}
            | {"strategy": STRATEGIES[processes], "processes": processes},
            "loader": {"kind": "device"},
            "factors": {"device": [device]},
            "evidence": dict.fromkeys(Evidence.model_fields),
        }
        there = {one: devices.absent(one) for one in ("cpu", "cuda")}
        counts = {one: devices.count(one) for one in there}
        name = f"{started}-{processes}"
        plans[started] = make_plan(name, Study.model_validate(values), EngineChoice("none", "asked for"), there, counts)
    write_plans(list(plans.values()), results)
    for plan in plans.values():
        make_dataset(plan, plan.runs[0].dataset, results)
        prepare_weights(Results(results).plan(plan.name), plan.runs[0].weights, results, None)
    return plans


def seconds(plan: Plan, results: Path) -> tuple[float, float]:
    """Seconds of one run: of its process without its training, and of its training."""
    with Path(os.devnull).open("w", encoding="utf-8") as log:
        record = attempt(RunContext(plan, plan.runs[0], results, Session(), plan.name, log, True)).record
    if record.measurement is None or record.started_as != record.settings.process:
        raise SystemExit(f"{plan.name}: {record.outcome}, started as {record.started_as}: {record.message}")
    return record.process_seconds - record.measurement.fit_seconds, record.measurement.fit_seconds


def main() -> None:
    """Print a line for each number of processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--processes", type=int, nargs="+", choices=STRATEGIES, default=[1, 2])
    parser.add_argument("--pairs", type=int, default=10)
    options: Any = parser.parse_args()
    os.environ["STUDY_INSTRUMENTS"] = "off"
    for processes in options.processes:
        with tempfile.TemporaryDirectory() as folder:
            print(line(processes, options.pairs, planned(options.device, processes, Path(folder)), Path(folder)))


def line(processes: int, pairs: int, plans: dict[str, Plan], results: Path) -> str:
    """What so many pairs of runs say. The first pair is not counted: the fork servers import in it."""
    start_fork_servers(
        list(plans.values()), [(plan.name, plan.runs[0].name) for plan in plans.values()], Results(results)
    )
    found: dict[str, list[tuple[float, float]]] = {side: [] for side in plans}
    for _ in range(1 + pairs):
        for side in random.sample(sorted(plans), len(plans)):
            found[side].append(seconds(plans[side], results))
    beyond, training = ({side: [one[part] for one in found[side][1:]] for side in found} for part in (0, 1))
    told = [
        f"{side}: {median(beyond[side]):.2f} s ({min(beyond[side]):.2f} to {max(beyond[side]):.2f}) beyond "
        f"{median(training[side]):.2f} s of training"
        for side in plans
    ]
    return (
        f"processes {processes}: {'; '.join(told)}; "
        f"beyond, fresh over forked {ratio(beyond['fresh'], beyond['forked'])}; "
        f"training, fresh over forked {ratio(training['fresh'], training['forked'])}; "
        f"{usable_cpus()} CPUs, load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
