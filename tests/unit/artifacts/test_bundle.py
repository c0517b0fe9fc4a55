"""What unpacks a bundle trusts none: whole or not at all, into a new folder, and nothing else than
a bundle's files."""

import os
import re
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from stat import S_IFLNK

import pytest

from study.artifacts import bundle
from study.artifacts.bundle import CHECKSUMS, as_folders, folder_of, is_held, unpack
from study.artifacts.checked import Fitting, each_record
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.base.errors import StudyError
from study.cli import main
from tests.conftest import ROOT

COMMITTED = sorted([*ROOT.glob("docs/example/*.zip"), *ROOT.glob("docs/claims/*.zip")])
OUT = "a name leads from folder to folder with forward slashes, and out of none"


def with_entries(
    target: Path, *entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED
) -> Path:
    """A small bundle with these entries besides its plan."""
    with zipfile.ZipFile(target, "w", method) as zipped:
        zipped.writestr("tiny/plan.json", os.urandom(999))
        for name, content in entries:
            zipped.writestr(name, content)
    return target


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_every_record_of_a_committed_bundle_is_read(path: Path, tmp_path: Path) -> None:
    """Whatever went from the models since, and without the analysis that was made then. A study of
    inference or of the loader alone, which nothing measures any more, is refused in a line."""
    unpack(path, tmp_path / "results")
    files = Results(tmp_path / "results")
    plans, refused = list[Plan](), set[str]()
    for plan_file in files.root.glob("*/plan.json"):
        try:
            plans.append(Plan.read(plan_file))
        except StudyError as error:
            told = (
                r"'(inference' is not allowed: inference|alone' is not allowed: the loader alone)"
            )
            assert re.search(f"{told} is a command now, .*: measure it again", str(error))
            refused.add(plan_file.parent.name)
    assert refused <= {"channels-last-cpu", "image-size", "jpeg-decoder", "reduce-overhead"}
    assert path.parent.name == "claims" or not refused
    found = [one for plan in plans for one in each_record(plan, files.records(plan.name))]
    with zipfile.ZipFile(path) as zipped:
        records = [name for name in zipped.namelist() if "/records/" in name]
    assert len(found) == sum(name.split("/")[0] not in refused for name in records) > 0
    assert [one for one in found if not isinstance(one, Fitting)] == []
    made = ("fit.json", "timings.csv", ".html")
    assert not [name for name in files_below(files.root) if name.endswith(made)]


@pytest.mark.parametrize("name", ["/etc/evil", "..\\evil", "../evil", "tiny/../../evil", "../"])
def test_an_entry_that_would_leave_its_folder_refuses_the_archive_and_is_named(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    archive = with_entries(tmp_path / "inner" / "a.zip", (name, b"../../evil"))
    with pytest.raises(StudyError) as raised:
        unpack(archive, tmp_path / "inner" / "out")
    assert f"{name!r} is not allowed: {OUT}" in str(raised.value)
    assert list(tmp_path.rglob("*")) == [tmp_path / "inner", archive]


def test_a_name_that_ends_early_is_refused(tmp_path: Path) -> None:
    """The standard library cuts a name at a NUL: what is looked at is the name that the archive
    holds."""
    archive = with_entries(tmp_path / "a.zip", ("tiny/plan.jsonXevil", b""))
    archive.write_bytes(archive.read_bytes().replace(b"plan.jsonX", b"plan.json\0"))
    with pytest.raises(StudyError, match=OUT):
        unpack(archive, tmp_path / "out")


def test_a_link_is_written_as_a_plain_file(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("tiny/records/x.json")
    entry.create_system, entry.external_attr = 3, (S_IFLNK | 0o777) << 16
    unpack(with_entries(tmp_path / "a.zip", (entry, b"/etc/passwd")), tmp_path / "out")
    written = tmp_path / "out" / "tiny" / "records" / "x.json"
    assert not written.is_symlink() and written.read_bytes() == b"/etc/passwd"


@pytest.mark.parametrize(
    "name", ["Tiny/plan.json", "plan.json/plan.json", f"{'x' * 300}/plan.json"]
)
def test_names_that_no_disk_holds_beside_each_other_leave_nothing(
    name: str, tmp_path: Path
) -> None:
    archive = with_entries(tmp_path / "a.zip", ("plan.json", b"{}"), (name, b"{}"))
    with pytest.raises(StudyError, match=r"two of its files have one name|cannot be unpacked into"):
        unpack(archive, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [archive]


def test_what_no_bundle_holds_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = [
        "tiny/run.sh",
        "tiny/records/.x.json",
        "README.md",
        "tiny/",
        "tiny/fit.json",
        "report.html",
    ]
    archive = with_entries(
        tmp_path / "a.zip", *((name, b"") for name in [*others, "a b/plan.json"])
    )
    assert main(["unbundle", str(archive)]) == 0
    assert capsys.readouterr().err == f"the results: {tmp_path / 'a'}\n"
    assert files_below(tmp_path / "a") == {"tiny/plan.json"}
    assert not is_held("plan.json\n")


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("MOST_FILES", 1, "it has 2 entries; allowed: up to 1"),
        ("MOST_BYTES", 1000, "unpacked it has 1009 bytes; allowed: up to 1000"),
    ],
)
def test_an_archive_beyond_a_limit_is_refused(
    limit: str, value: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = with_entries(tmp_path / "a.zip", ("plan.json", b"0123456789"))
    monkeypatch.setattr(bundle, limit, value)
    with pytest.raises(StudyError) as raised:
        unpack(archive, tmp_path / "out")
    assert str(raised.value) == f"{archive}: {words}"
    assert list(tmp_path.iterdir()) == [archive]


def test_a_bomb_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    archive = with_entries(tmp_path / "a.zip", ("plan.json", bytes(10**7)))
    with pytest.raises(StudyError, match=r"unpacked it has 10000999 bytes; allowed: up to \d+$"):
        unpack(archive, tmp_path / "out")


def test_a_bundle_is_compressed_by_deflate_alone(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="encrypted, or compressed by another method than deflate"):
        unpack(with_entries(tmp_path / "a.zip", method=zipfile.ZIP_LZMA), tmp_path / "out")


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def altered(content: bytes) -> bytes:
    """The same archive with one changed byte in a file."""
    return content.replace(b"0123456789", b"0123456788")


@pytest.mark.parametrize("damage", [cut, altered])
def test_a_damaged_archive_leaves_nothing(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    archive = with_entries(
        tmp_path / "a.zip", ("plan.json", b"0123456789"), method=zipfile.ZIP_STORED
    )
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(StudyError, match="not a zip archive, or a damaged one"):
        unpack(archive, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [archive]


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (lambda sums: sums, ""),
        (lambda sums: sums | {"plan.json": "0" * 64}, "'plan.json' does not fit checksums.sha256"),
        (lambda sums: {"plan.json": sums["plan.json"]}, "'tiny/plan.json' does not fit"),
        (lambda sums: sums | {"tiny/records/x": "0" * 64}, "'tiny/records/x' does not fit"),
    ],
)
def test_a_file_that_does_not_fit_the_checksums_refuses_the_archive(
    listed: Callable[[dict[str, str]], dict[str, str]], words: str, tmp_path: Path
) -> None:
    contents = {"plan.json": b"{}", "tiny/plan.json": b"[]"}
    sums = listed({name: sha256(content).hexdigest() for name, content in contents.items()})
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        for name, content in contents.items():
            zipped.writestr(name, content)
        zipped.writestr(
            CHECKSUMS, "".join(f"{checksum}  {name}\n" for name, checksum in sums.items())
        )
    if not words:
        return unpack(tmp_path / "a.zip", tmp_path / "out")
    with pytest.raises(StudyError, match=words):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("archive", "folder"), [("a.zip", "a"), ("b/a", "b/a.unpacked"), (".", "..unpacked")]
)
def test_a_bundle_unpacks_beside_itself_under_its_own_name(archive: str, folder: str) -> None:
    assert folder_of(Path(archive)) == Path(folder)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["README.md"], "$"),
        (["artifact/b.zip"], ", but 'artifact/b.zip': unpack the archive"),
        (["results/plan.json", "results/tiny/plan.json"], ", but 'results/tiny/plan.json'"),
    ],
)
def test_an_archive_of_something_else_is_no_bundle(
    names: list[str], told: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        for name in names:
            zipped.writestr(name, "{}")
    with pytest.raises(StudyError, match=f"not a bundle: it holds no <study>/plan.json{told}"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_what_exists_is_never_replaced_not_even_a_link_to_nothing(tmp_path: Path) -> None:
    archive = with_entries(tmp_path / "a.zip")
    (tmp_path / "out").symlink_to(tmp_path / "gone")
    with pytest.raises(StudyError, match="it exists already, and nothing is replaced"):
        unpack(archive, tmp_path / "out")
    assert not (tmp_path / "gone").exists()


def test_a_bundle_lies_unpacked_for_as_long_as_it_is_read(tmp_path: Path) -> None:
    archive = with_entries(tmp_path / "a.zip")
    with as_folders([archive, tmp_path]) as (unpacked, folder):
        assert folder == tmp_path
        assert unpacked.name == "a.zip"
        assert (unpacked / "tiny" / "plan.json").is_file()
    assert not unpacked.exists()
