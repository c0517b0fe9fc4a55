"""``import study``: what it offers, and what it leaves unloaded."""

import doctest
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.style
import pandas as pd
import pytest

import study
import study.analysis.interface
from study.analysis.analysis import analyse
from study.analysis.table.tables import read_timings, write_csv
from study.artifacts.checked import read_records
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from tests.conftest import ROOT
from tests.examples import EXAMPLE


@pytest.fixture(scope="module")
def photographs() -> study.StudyResults:
    return study.open(EXAMPLE)["photographs"]


def loaded_after(program: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after ``program``, without those that it
    starts with."""
    whole = (
        f"import sys; before = set(sys.modules); {program}; print(*(set(sys.modules) - "
        "before), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", whole], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_import_study_loads_nothing_else() -> None:
    assert loaded_after("import study; study.__version__, dir(study)") == {"study"}


def test_no_part_of_the_interface_loads_torch() -> None:
    loaded = loaded_after(
        f"import study; study.open({str(EXAMPLE)!r})['photographs-speedup'].figure('pairs')"
    )
    assert "pandas" in loaded
    assert not {name.partition(".")[0] for name in loaded} & {"torch", "torchvision", "fastai"}


def test_every_public_name_is_there_and_described() -> None:
    for name in study.__all__:
        assert name in dir(study)
        assert getattr(study, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'openn'"):
        study.openn  # noqa: B018


def test_the_examples_of_the_documents_are_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    api = doctest.testfile(
        str(ROOT / "docs" / "api.md"), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    for result in (api, *map(doctest.testmod, (study, study.analysis.interface))):
        assert result.attempted > 0
        assert result.failed == 0


def test_opened_results_show_their_page_in_a_notebook_without_a_server(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "photographs-speedup", tmp_path / "one")
    assert study.open(tmp_path)._repr_html_() is None
    (tmp_path / "report.html").write_text('<p title="a">4 > 3</p>', encoding="utf-8")
    shown = str(study.open(tmp_path)._repr_html_())
    assert 'srcdoc="&lt;p title=&quot;a&quot;&gt;4 &gt; 3&lt;/p&gt;"' in shown


@pytest.mark.parametrize("name", ["photographs", "photographs-speedup"])
def test_table_and_analysis_are_those_of_the_pipeline_which_passes_them_in_files(
    name: str, tmp_path: Path
) -> None:
    opened, files = study.open(EXAMPLE)[name], Results(EXAMPLE)
    plan = Plan.read(files.plan(name))
    write_csv(opened.timings(), tmp_path / "timings.csv")
    passed = read_timings(tmp_path / "timings.csv", plan)
    pd.testing.assert_frame_equal(opened.timings(), passed, rtol=1e-9)
    records = read_records(plan, files.records(name))
    assert opened.analysis() == analyse(plan, passed, records, opened.epochs())
    assert set(opened.records()) == set(passed["run"])


def test_what_a_caller_does_with_a_table_stays_his_own(photographs: study.StudyResults) -> None:
    photographs.timings()["fit_seconds"] = 0.0
    photographs.records().clear()
    assert photographs.timings()["fit_seconds"].min() > 0
    assert len(photographs.records()) == 75


def test_a_figure_leaves_the_callers_matplotlib_alone(
    photographs: study.StudyResults, tmp_path: Path
) -> None:
    backend, settings = matplotlib.get_backend(), dict(matplotlib.rcParams)
    photographs.figure("curve").savefig(tmp_path / "curve.png", dpi=160)
    assert (backend, settings) == (matplotlib.get_backend(), dict(matplotlib.rcParams))


def test_a_figure_looks_as_in_the_report_whatever_the_callers_style(tmp_path: Path) -> None:
    charts = study.open(EXAMPLE)["photographs-speedup"].figures()
    for name, style in (("report", "default"), ("own", "ggplot")):
        with matplotlib.rc_context():
            matplotlib.style.use(style)
            figure = charts["pairs"].figure
        figure.savefig(tmp_path / name, format="png")
    assert (tmp_path / "own").read_bytes() == (tmp_path / "report").read_bytes()


def test_a_bundle_is_unpacked_for_as_long_as_its_results_are_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened = study.open(ROOT / "docs" / "example" / "results.zip")["photographs-speedup"]
    plain = study.open(EXAMPLE)["photographs-speedup"]
    pd.testing.assert_frame_equal(opened.timings(), plain.timings())
    assert list(tmp_path.iterdir())
    del opened
    assert not list(tmp_path.iterdir())


def test_what_holds_no_results_or_a_damaged_plan_is_one_error(tmp_path: Path) -> None:
    for place, words in (
        (tmp_path, "not a results folder: it holds no <study>/plan.json"),
        (tmp_path / "results", "not a results folder: no such folder"),
        (EXAMPLE / "photographs", "not a results folder: it holds no <study>/plan.json"),
        (ROOT / "README.md", "README.md: not a bundle"),
    ):
        with pytest.raises(study.StudyError, match=words):
            study.open(place)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "plan.json").write_text("{}")
    with pytest.raises(study.StudyError, match=r"plan\.json"):
        study.open(tmp_path)["one"].timings()


def test_unknown_names_are_errors_that_list_the_allowed(photographs: study.StudyResults) -> None:
    told = "no study 'photograph'; allowed: photographs, photographs-speedup"
    with pytest.raises(study.StudyError, match=told):
        study.open(EXAMPLE)["photograph"]
    with pytest.raises(study.StudyError, match=r"no figure 'curves'; allowed: curve, "):
        photographs.figure("curves")
