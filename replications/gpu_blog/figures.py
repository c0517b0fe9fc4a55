"""The blog's figures under their own names: ``python -m replications.gpu_blog.figures RESULTS
OUTPUT``."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import study
from replications.command import run

TIMES = "batch_size_performance.png"
NAMES = {"runs": TIMES, "curve": TIMES, "monitor": "GPU-batch-test.png"}
"""The blog's name of each figure: the report's curve, which has the blog's seconds beside ours, or
its rows below four sizes; and the panels of its monitor."""
DPI = 160
GIB = 2**30
SIZE = "training.batch_size"


def write_figures(results: Path, output: Path) -> list[Path]:
    """Write the blog's figures of a results folder as PNG, each of the first study that has it;
    return their files.

    Raise :class:`study.StudyError` if the folder holds no study, or no study has one of them.
    """
    drawn: dict[str, Figure] = {}
    opened = study.open(results)
    for name in opened:
        drawn = figures_of(opened[name]) | drawn
    if not drawn:
        raise study.StudyError(
            f"{results}: no study has one of the blog's figures: {', '.join(NAMES.values())}"
        )
    output.mkdir(parents=True, exist_ok=True)
    written = {output / NAMES[name]: drawn[name] for name in NAMES if name in drawn}
    for path, picture in written.items():
        picture.savefig(path, dpi=DPI)
    return list(written)


def figures_of(results: study.StudyResults) -> dict[str, Figure]:
    """Return those of the blog's figures that a study has: the report's of the times, and the
    monitor's panels."""
    if SIZE not in results.plan().study.factors:
        return {}
    found = {name: one.figure for name, one in results.figures().items() if name in NAMES}
    if any(runs_on_gpu(results).values()):
        found["monitor"] = panels(results)
    return found


def panels(results: study.StudyResults) -> Figure:
    """Return a row for each way to train on the GPU, with a panel for each batch size and a line
    for each run."""
    rows = {label: levels for label, levels in runs_on_gpu(results).items() if levels}
    columns = max(len(levels) for levels in rows.values())
    figure = Figure(figsize=(2.4 * columns + 1.2, 2.3 * len(rows) + 0.6), layout="constrained")
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    for part, (name, levels) in zip(parts, rows.items(), strict=True):
        label = "".join(sign for sign in name if sign.isprintable())
        title = f"{label}: GPU utilisation (blue) and memory used (orange)"
        part.suptitle(fill(title, 20 * columns), fontsize=10)
        part.supxlabel("time within a run (s)", fontsize=9)
        every = part.subplots(1, columns, sharey=True, squeeze=False)[0]
        every[0].set_ylabel("utilisation (%)")
        twins: list[Axes] = []
        for axes, (size, names) in zip(every, levels.items(), strict=False):
            memory = axes.twinx()
            twins.append(memory)
            axes.set(title=f"batch size {size}", ylim=(0, 105))
            for run_name in names:
                samples = results.telemetry(run_name)
                if samples is not None:
                    seconds = samples["seconds"] - samples["seconds"].min()
                    axes.plot(
                        seconds,
                        samples["gpu_utilisation_percent"],
                        color="C0",
                        alpha=0.5,
                        linewidth=0.8,
                    )
                    memory.plot(
                        seconds, samples["gpu_memory_used_bytes"] / GIB, color="C1", linewidth=0.8
                    )
        most = max(memory.get_ylim()[1] for memory in twins)
        for memory in twins:
            memory.set_ylim(0, most)
            memory.tick_params(labelright=memory is twins[-1])
        twins[-1].set_ylabel("memory (GiB)")
        for axes in every[len(levels) :]:
            axes.set_axis_off()
    return figure


def runs_on_gpu(results: study.StudyResults) -> dict[str, dict[int, list[str]]]:
    """Return the names of the runs that count, by the label of their way to train and by their
    batch size."""
    times = results.timings()
    on_gpu = (times["outcome"] == "ok") & (times["device"] == "cuda")
    counted, found = times[on_gpu & times["excluded"].isna()], {}
    for group in results.analysis().groups:
        own = counted[counted["group"] == group.label]
        sizes = sorted(own[SIZE].unique().tolist())
        found[group.label] = {size: own.loc[own[SIZE] == size, "run"].tolist() for size in sizes}
    return found


def main(arguments: Sequence[str]) -> int:
    """Write the figures, and say where; return the exit code."""
    return run(
        "gpu_blog.figures RESULTS OUTPUT", len(arguments) == 2, lambda: told(*map(Path, arguments))
    )


def told(results: Path, output: Path) -> Iterator[Path]:
    """Write the figures and yield their paths, then say which are not drawn."""
    written = write_figures(results, output)
    yield from written
    missing = [name for name in NAMES.values() if name not in {path.name for path in written}]
    if missing:
        print(
            f"not drawn, for these results have no runs for it: {', '.join(missing)}",
            file=sys.stderr,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
