"""What a start costs before its first run, with many runs: seconds and memory of Snakemake with our
plan.

``python -m benchmarks.many_plans [--runs 10000 100000] [--steps dry-run executor]`` plans a study
of learning rates and a thousand replicates in an empty folder. ``dry-run`` is ``snakemake -n``.
``executor`` is a start with Snakemake's executor ``cluster-sync`` until it submits the first run;
data and weights count as there. CPU seconds hold on a busy machine, too. Every executor that is
installed is imported by every start: that for SLURM brings pandas, and 100 MB.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.many_records import ROOT, Cost, cost
from study.artifacts.layout import Results
from study.artifacts.plan import Plan

NAME, REPLICATES = "many", 1000
STEPS = ("dry-run", "executor")
KILLED = -9
WORKFLOW = [
    f"--snakefile={ROOT / 'workflow/Snakefile'}",
    f"--workflow-profile={ROOT / 'workflow/profiles/default'}",
]
SUBMIT = "kill -KILL $PPID;:"
"""What the executor runs in place of its first job: it ends the start."""


def make_study(folder: Path, runs: int) -> None:
    """Write the configuration of one study of about so many runs."""
    config = {"studies": [NAME], "devices": ["cpu"], "container": "none"}
    study = {
        "title": "Many",
        "question": "What does a plan cost?",
        "dataset": {"source": "generated", "images": 20, "image_size": 32},
        "model": {"name": "replications.gpu_lab.networks:small_net", "weights": "none"},
        "training": {"loop": "torch", "freeze_epochs": 0, "epochs": 1, "batch_size": 4},
        "loader": {"kind": "device"},
        "factors": {
            "training.learning_rate": [
                round(0.001 * (1 + level), 6) for level in range(runs // REPLICATES)
            ]
        },
        "replicates": REPLICATES,
        "curve": None,
    }
    (folder / "config" / "studies").mkdir(parents=True)
    (folder / "config" / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    (folder / "config" / "studies" / f"{NAME}.yaml").write_text(json.dumps(study), encoding="utf-8")


def snakemake(folder: Path, *arguments: str, ends: int = 0) -> Cost:
    """Return what a start in ``folder`` took."""
    return cost(
        [sys.executable, "-m", "snakemake", *WORKFLOW, *arguments], folder, ends, quiet=True
    )


def dry_run(folder: Path) -> Cost:
    """Return what a dry run took."""
    return snakemake(folder, "--cores", "1", "--dry-run")


def executor(folder: Path) -> Cost:
    """Return what a start with an executor took until it submitted the first run."""
    snakemake(folder, "--cores", "1", "--until", "plan", "--config", "overrides={replicates: 1}")
    files = Results(folder / "results")
    run = Plan.read(files.plan(NAME)).runs[0]
    for made in (files.manifest(run.dataset), files.weights(NAME, run.weights)):
        made.parent.mkdir(parents=True)
        made.touch()
    options = ["--executor", "cluster-sync", "--jobs", "2", "--cluster-sync-submit-cmd", SUBMIT]
    return snakemake(folder, *options, ends=KILLED)


def costs(runs: int, steps: Sequence[str]) -> Iterator[tuple[str, Cost]]:
    """Yield what each step took with so many runs."""
    for step in steps:
        with tempfile.TemporaryDirectory() as folder:
            make_study(Path(folder), runs)
            yield step, dry_run(Path(folder)) if step == "dry-run" else executor(Path(folder))


def main() -> None:
    """Print a row for each step of each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    options = parser.parse_args()
    print("| runs | step | CPU (s) | wall (s) | memory (MB) |")
    print("| --- | --- | --- | --- | --- |")
    for runs in options.runs:
        for step, took in costs(runs, options.steps):
            print(
                f"| {runs} | {step} | {took.cpu:.1f} | {took.wall:.1f} | {took.peak / 1e6:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
