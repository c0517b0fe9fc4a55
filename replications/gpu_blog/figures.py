"""The blog's figures under their own names: ``python -m replications.gpu_blog.figures RESULTS OUTPUT``."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import study
from replications.command import run

NAMES = {"batch_size_performance": "batch_size_performance.png", "telemetry_cuda": "GPU-batch-test.png"}
"""The blog's name of each figure of the report that it has, too."""
DPI = 160


def blog_name(figure: str) -> str:
    """Return the file of a figure of the report: the blog's, or one like it where the blog has none."""
    return NAMES.get(figure, f"{figure}.png")


def write_figures(results: Path, output: Path) -> list[Path]:
    """Write the blog's figures of a results folder as PNG, each of the first study that has it; return their files.

    Raise :class:`study.StudyError` if the folder holds no study, or no study has one of them.
    """
    written: dict[str, Path] = {}
    opened = study.open(results)
    for name in opened:
        drawn = opened[name].figures()
        for figure in NAMES.keys() & drawn.keys() - written.keys():
            output.mkdir(parents=True, exist_ok=True)
            written[figure] = output / blog_name(figure)
            drawn[figure].figure.savefig(written[figure], dpi=DPI)
    if not written:
        raise study.StudyError(f"{results}: no study has one of the blog's figures: {', '.join(NAMES.values())}")
    return [written[figure] for figure in NAMES if figure in written]


def main(arguments: Sequence[str]) -> int:
    """Write the figures, and say where; return the exit code."""
    return run("gpu_blog.figures RESULTS OUTPUT", len(arguments) == 2, lambda: told(*map(Path, arguments)))


def told(results: Path, output: Path) -> Iterator[Path]:
    """Write the figures and yield their paths, then say which are not drawn."""
    written = write_figures(results, output)
    yield from written
    missing = [name for name in NAMES.values() if name not in {path.name for path in written}]
    if missing:
        print(f"not drawn, for these results have no runs for it: {', '.join(missing)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
