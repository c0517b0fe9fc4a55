"""What the published documents print, and a user's own replication."""

import csv
import re
import shutil
from pathlib import Path

import pytest

from study.analysis.published.claims import claims_in
from study.analysis.wording.sources import citation, document, place_words
from study.artifacts.published import all_published, published_by, read_published
from study.base.errors import StudyError
from study.base.files import ROOT
from study.cli import main
from study.config.load import read_selection, read_study
from study.host.plan.configuration import study_folders
from tests.conftest import tiny_plan

PUBLISHED = {one.name: one for one in all_published()}
SHARED = ROOT.parent / "shared" / "published"


def test_every_document_names_its_title_and_its_kind() -> None:
    assert len(PUBLISHED) == 4
    for one in PUBLISHED.values():
        assert {figure.source for figure in one.figures} == set(one.sources)
        for source in one.sources.values():
            assert source.title and source.short_name and source.kind


def test_the_facts_are_those_of_the_shared_list() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared list is not here")
    sources = [source for one in PUBLISHED.values() for source in one.sources.values()]
    with (SHARED / "sources.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            (ours,) = [source for source in sources if source.short_name == row["short_name"]]
            for key in ("title", "kind", "date", "address", "note"):
                assert (getattr(ours, key) or "") == row[key]
    values = sorted(figure.value for one in PUBLISHED.values() for figure in one.figures)
    with (SHARED / "published.csv").open(encoding="utf-8", newline="") as file:
        assert values == sorted(float(row["value"]) for row in csv.DictReader(file) if row["value"])


def test_no_field_but_an_address_can_hold_a_persons_account_or_number() -> None:
    for one in PUBLISHED.values():
        for source in one.sources.values():
            for key, value in source.model_dump(exclude={"dataset"}).items():
                if key != "address":
                    assert "@" not in str(value)
                    assert not re.search(r"\d{7,}", str(value))
            assert not source.address or re.fullmatch(r"https://[\w./-]+", source.address)


def test_the_figure_that_the_blog_shows_is_the_blogs() -> None:
    post, figure = PUBLISHED["gpu_blog"].sources.values()
    assert (figure.title, figure.address, figure.date) == (post.title, post.address, post.date)


def test_a_citation_names_the_document_the_place_and_the_address() -> None:
    (claim,) = [claim for claim in claims_in(PUBLISHED["gpu_blog"]) if claim.ratio == 9.97]
    assert citation(claim.source, claim.place) == (
        "the blog: GPU Acceleration: Unravelling Deep Learning Performance Gains (blog post, 2025-04-16), the text, "
        "line 18 of published.csv; https://github.com/Zyzzbarth333/elec4630-blog"
    )


def test_a_document_without_date_or_address_says_neither() -> None:
    lab = PUBLISHED["gpu_lab"].sources["report_b"]
    assert document(lab) == "GPU lab (report B): Lab parts 1 to 5: training on CPU and GPU (student's lab report)"
    assert citation(lab, "part 2").endswith("(student's lab report), part 2; no address is known")


def test_places_are_named_once_with_every_line() -> None:
    assert place_words(["table", "table", "part 2"], [3, 5, 9]) == (
        "the table and part 2, lines 3, 5 and 9 of published.csv"
    )
    assert place_words(["log"]) == "the printed log"


def test_a_plan_holds_the_figures_that_name_its_study_and_a_study_that_none_names_gets_all() -> None:
    lab = PUBLISHED["gpu_lab"]
    workers = published_by("published", "gpu_lab", "lab-workers")
    assert {figure.study for figure in workers.figures} == {"lab-workers"}
    assert published_by("published", "gpu_lab", "mine") == lab
    plan = tiny_plan(published="gpu_blog", claims_of="gpu_lab")
    assert plan.beside == PUBLISHED["gpu_blog"]
    assert plan.claimed == lab
    assert type(plan).of_text(plan.model_dump_json()) == plan


def test_every_condition_is_a_level_that_a_study_of_the_replication_can_have() -> None:
    for name, one in PUBLISHED.items():
        studies = [path.stem for path in (ROOT / "replications" / name / "studies").glob("*.yaml")]
        assert {figure.study for figure in one.figures} - {None} <= set(studies)
        for figure in one.figures:
            assert figure.at.get("device", "cpu") in ("cpu", "cuda")
            assert figure.at.get("training.strategy", "single") in ("single", "ddp", "ddp_two_nodes")
            assert type(figure.at.get("training.batch_size", 1)) is int


def test_an_installed_package_without_a_checkout_says_that_it_has_no_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("study.base.checkout.ROOT", tmp_path)
    assert main(["claims"]) == 1
    assert capsys.readouterr().err.startswith("error: claims: there is no folder replications")


def test_a_replication_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(StudyError) as refused:
        tiny_plan(published="gpu_blogg")
    assert (refused.value.key, refused.value.value) == ("published", "gpu_blogg")
    assert "gpu_blog" in refused.value.allowed


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A replication of a user's own in the folder where he starts."""
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(ROOT / "replications" / "cifar10_project", tmp_path / "replications" / "mine")
    (folder / "studies" / "cifar10-cnn.yaml").rename(folder / "studies" / "cifar10-mine.yaml")
    return folder


def test_a_users_own_replication_is_found_beside_those_of_the_checkout(own: Path) -> None:
    assert read_study("cifar10-mine", study_folders(), read_selection({})).published == "cifar10_project"
    assert read_study("lab-device", study_folders(), read_selection({})).published == "gpu_lab"
    assert {one.name for one in all_published()} == {*PUBLISHED, "mine"}
    assert tiny_plan(published="mine").beside is not None


@pytest.mark.parametrize(
    ("before", "after", "key", "value"),
    [
        ("training.batch_size", "training.batchsize", "training.batchsize", None),
        ("report,log,cpu", "reports,log,cpu", "source", "reports"),
        ("290.67", "fast", "value", "fast"),
    ],
)
def test_a_broken_file_is_one_line_with_its_place(
    own: Path, before: str, after: str, key: str, value: str | None
) -> None:
    file = own / "published.csv"
    file.write_text(file.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    with pytest.raises(StudyError) as refused:
        read_published(own)
    assert refused.value.source.startswith("mine/published.csv")
    assert refused.value.key == key
    assert value is None or refused.value.value == value
