"""What ``import study`` offers: a results folder, opened to be read."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis, StudyResult, result_of
from study.analysis.answers.claim import ClaimRow as ClaimRow
from study.analysis.answers.claim import Judge
from study.analysis.answers.context import Context
from study.analysis.figures.style import Chart
from study.analysis.step import charts_of
from study.artifacts.bundle import unpack
from study.artifacts.checked import read_records, read_samples
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.errors import StudyError
from study.config.claims import Claim as Claim
from study.config.load import read_study
from study.config.selection import Selection


def open(results: str | PathLike[str]) -> "ResultsFolder":
    """Return a results folder, or a bundle of one, opened to be read: nothing in it is changed.

    Each of its studies is a folder with a ``plan.json``, and with ``records`` and ``telemetry`` if
    runs were made, such as ``results`` after ``make study``. A bundle is what ``study bundle``
    makes of it: it is unpacked into a temporary folder, for as long as its results are in use.
    Raise :class:`StudyError` if there is no study.

    >>> opened = open("docs/example/results.zip")
    >>> opened.studies
    ['photographs', 'photographs-speedup', 'photographs-switches']
    >>> opened["photographs"].analysis().groups[0].best
    '32'
    """
    path = Path(results).expanduser()
    if path.is_file():
        scratch = TemporaryDirectory(prefix="study-open-")
        folder = Path(scratch.name) / path.name
        unpack(path, folder)
        return ResultsFolder(folder, scratch)
    if not path.is_dir():
        raise StudyError(f"{path}: not a results folder: no such folder")
    opened = ResultsFolder(path)
    if not opened.studies:
        raise StudyError(f"{path}: not a results folder: it holds no <study>/plan.json")
    return opened


def claims_in(file: str) -> list[Claim]:
    """Return the claims that the file of a study states, each with its source. Raise
    :class:`StudyError` for a file that is none."""
    return read_study(file, [], Selection()).claims


class ResultsFolder:
    """The studies of a results folder, each by its name in brackets."""

    def __init__(self, folder: Path, scratch: TemporaryDirectory[str] | None = None) -> None:
        self.folder = folder
        self._scratch = scratch
        self.studies = sorted(plan.parent.name for plan in folder.glob("*/plan.json"))

    def __getitem__(self, study: str) -> "StudyResults":
        """Return the results of one study. Raise :class:`StudyError` for an unknown name, with
        those allowed."""
        if study not in self.studies:
            raise StudyError(
                f"{self.folder}: no study {study!r}; allowed: {', '.join(self.studies)}"
            )
        return StudyResults(Results(self.folder), study, self._scratch)

    def __iter__(self) -> Iterator[str]:
        return iter(self.studies)

    def __repr__(self) -> str:
        return f"<results of {', '.join(self.studies)}>"

    def _repr_html_(self) -> str | None:
        """Return the page for a notebook, in a frame that needs no server; None where there is no
        page."""
        page = Results(self.folder).report
        if not page.is_file():
            return None
        text = escape(page.read_text(encoding="utf-8"))
        return (
            f'<iframe title="the report" srcdoc="{text}" style="width: 100%; height: 60em; '
            'border: 0"></iframe>'
        )


class StudyResults:
    """The results of one study, computed from its plan, records and telemetry as the pipeline
    computes them.

    Each result is computed at its first use, and kept: open the folder again to see runs that were
    made since.
    """

    def __init__(
        self, files: Results, name: str, scratch: TemporaryDirectory[str] | None = None
    ) -> None:
        self.name = name
        self._scratch = scratch  # the folder is removed with the last that reads it
        self._files = files

    def __repr__(self) -> str:
        return (
            f"<results of {self.name}: {len(self._result.records.included)} of "
            f"{len(self._plan.runs)} runs>"
        )

    def timings(self) -> pd.DataFrame:
        """Return the table of timings: one row per planned run, and one per record that was
        excluded.

        docs/timings.md describes the columns; ``excluded`` is empty in the rows that count.

        >>> times = open("docs/example/results.zip")["photographs"].timings()
        >>> fastest = times.groupby("training.batch_size")["fit_seconds"].min()
        """
        return self._result.frame.copy()

    def epochs(self) -> pd.DataFrame:
        """Return one row for each epoch of each run that trained: times in seconds, losses and
        accuracy.

        ``seconds`` is the time until the epoch's end, and ``excluded`` is as in the table of
        timings.

        >>> epochs = open("docs/example/results.zip")["photographs-speedup"].epochs()
        >>> epochs.groupby("epoch")["accuracy"].median().round(2).tolist()
        [0.52, 0.54, 0.59, 0.85]
        """
        return self._result.epochs.copy()

    def records(self) -> dict[str, Record]:
        """Return the record of each run that has one, by the run's name: the raw samples, and what
        measured them.

        A record that does not fit its plan, its schema or its checksum is left out;
        ``analysis().warnings`` names it.

        >>> results = open("docs/example/results.zip")
        >>> record = results["photographs-speedup"].records()["workers-cuda-r1"]
        >>> record.outcome, record.settings.training.batch_size
        ('ok', 64)
        """
        return read_records(self._plan, self._files.records(self.name)).included

    def telemetry(self, run: str) -> pd.DataFrame | None:
        """Return what was sampled during a run that counts, ten rows a second; None without samples
        that fit it.

        The columns are ``seconds`` since 1970, utilisation, memory, and on a GPU its power, energy,
        clock and temperature.

        >>> results = open("docs/example/results.zip")
        >>> results["photographs-speedup"].telemetry("workers-cuda-r1").shape[1]
        10
        """
        record = self._result.records.included.get(run)
        if record is None:
            return None
        folder = self._files.telemetry_folder(self.name)
        with suppress(StudyError):  # the table says why samples are not used
            return read_samples(record, folder / f"{run}.{record.key}.parquet")
        return None

    def analysis(self) -> Analysis:
        """Return what the report says of the study: means with intervals, the laws, what may be the
        fastest.

        >>> for group in open("docs/example/results.zip")["photographs"].analysis().groups:
        ...     print(group.label, group.best)
        GPU, stock fastai 32
        GPU, plain loop 32
        GPU, all switches on 32
        """
        return self._result.analysis

    def plan(self) -> Plan:
        """Return what was planned: the study as its file says it, and its runs in their order.

        >>> open("docs/example/results.zip")["photographs-speedup"].plan().study.title
        'Speed-up of the GPU on photographs'
        """
        return self._plan

    def answer(self) -> list[str]:
        """Return the statements of the report's answer, as sentences, that which the question asks
        for first."""
        analysis = self.analysis()
        context = Context(self._plan.study, analysis.groups, scope=analysis.screen.scope)
        told = [analysis.answer, *(answer.text(context) for answer in analysis.answers)]
        return [text.replace("**", "") for text in dict.fromkeys(told)]

    def caveats(self) -> list[str]:
        """Return what a reader must know before believing the numbers, the most important first."""
        return [caveat.text() for caveat in self.analysis().warnings]

    def claims(self, file: str | None = None) -> list[ClaimRow]:
        """Return the claims of the study, each beside what was measured here, with the word of the
        report. Those of another ``file`` of the study, such as a later one, are judged by the same
        runs.

        >>> for row in open("docs/example/results.zip")["photographs-speedup"].claims():
        ...     print(f"{row.word}: {row.claim}")
        another job: The GPU is 9.97 times as fast as the CPU
        """
        if file is None:
            return list(self.analysis().claims)
        later = read_study(file, [], Selection())
        changes = {"claims": later.claims, "claim_margin": later.claim_margin}
        study = self._plan.study.model_copy(update=changes)
        return Judge.of(study, self._result.frame).rows()

    def figures(self) -> dict[str, Chart]:
        """Return every figure of the report by name, with its title and its caption.

        >>> list(open("docs/example/results.zip")["photographs"].figures())
        ['curve', 'length', 'learning', 'clock']
        """
        return dict(self._figures)

    def figure(self, name: str) -> Figure:
        """Return the figure ``name`` of the report. Raise :class:`StudyError` for an unknown one,
        with those allowed.

        The caller's matplotlib keeps its backend and its style.

        >>> results = open("docs/example/results.zip")
        >>> results["photographs"].figure("curve").savefig("curve.svg")
        """
        if name not in self._figures:
            raise StudyError(
                f"figure: {self.name} has no figure {name!r}; allowed: {', '.join(self._figures)}"
            )
        return self._figures[name].figure

    @cached_property
    def _plan(self) -> Plan:
        return Plan.read(self._files.plan(self.name))

    @cached_property
    def _result(self) -> StudyResult:
        return result_of(self._files, self.name)

    @cached_property
    def _figures(self) -> dict[str, Chart]:
        return charts_of(self._result)
