"""What unpacks a bundle trusts none: whole or not at all, into a new folder, and nothing else than a bundle's files."""

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from stat import S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK

import pytest

from study.artifacts import bundle as unbundle
from study.artifacts.bundle import METADATA, as_folders, folder_of, kind_of, unpack
from study.base.errors import StudyError
from study.cli import main

OUT = "a name leads from folder to folder, and out of none"


def quiet(_: str) -> None:
    pass


def with_entries(
    target: Path, *entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED
) -> Path:
    """A small bundle with these entries besides its own."""
    with zipfile.ZipFile(target, "w", method) as zipped:
        zipped.writestr(METADATA, "{}")
        zipped.writestr("tiny/plan.json", os.urandom(999))
        for name, content in entries:
            zipped.writestr(name, content)
    return target


def special(mode: int, name: str = "tiny/records/x.json") -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, mode << 16
    return entry


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        *((name, "a name is a relative path") for name in ("/etc/evil", "..\\evil", "C:evil")),
        *((name, OUT) for name in ("../evil", "tiny/../../evil", "tiny//evil", "./evil", "../")),
        *((special(mode | 0o644), "it is a link or a device") for mode in (S_IFLNK, S_IFDIR, S_IFIFO, S_IFCHR)),
        (special(S_IFLNK | 0o777, "tiny/records"), "it is a link or a device"),
        *((name, "'tiny/plan.json' is there already") for name in ("tiny/plan.json", "Tiny/plan.json")),
    ],
)
def test_an_entry_that_would_leave_its_folder_refuses_the_archive_and_is_named(
    entry: str | zipfile.ZipInfo, reason: str, tmp_path: Path
) -> None:
    name = entry if isinstance(entry, str) else entry.filename
    (tmp_path / "inner").mkdir()
    archive = with_entries(tmp_path / "inner" / "a.zip", (entry, b"../../evil"))
    with pytest.raises(StudyError) as raised:
        unpack(archive, tmp_path / "inner" / "out", quiet)
    assert f"{name!r} is not allowed: {reason}" in str(raised.value)
    assert list(tmp_path.rglob("*")) == [tmp_path / "inner", archive]


def test_a_name_that_ends_early_is_refused(tmp_path: Path) -> None:
    """The standard library cuts a name at a NUL: what is looked at is the name that the archive holds."""
    archive = with_entries(tmp_path / "a.zip", ("tiny/fit.jsonXevil", b""))
    archive.write_bytes(archive.read_bytes().replace(b"fit.jsonX", b"fit.json\0"))
    with pytest.raises(StudyError, match=OUT):
        unpack(archive, tmp_path / "out", quiet)


def test_files_that_no_bundle_holds_are_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = with_entries(
        tmp_path / "a.zip", ("tiny/run.sh", b"rm"), ("tiny/records/.x.json", b""), ("README.md", b""), ("tiny/", b"")
    )
    assert main(["unbundle", str(archive)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "a.zip: left out, because no bundle holds such a file: tiny/run.sh, tiny/records/.x.json, README.md",
        f"the results: {tmp_path / 'a'}",
    ]
    unpacked = {path.relative_to(tmp_path / "a").as_posix() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert unpacked == {METADATA, "tiny/plan.json"}


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("MOST_FILES", 2, "it has 3 entries; allowed: up to 2"),
        ("MOST_BYTES", 1000, "unpacked it has 1011 bytes; allowed: up to 1000"),
        ("LARGEST", 998, "'tiny/plan.json' is not allowed: it has 999 bytes; allowed: up to 998"),
        ("LARGEST_LIST", 150, "not a bundle: not a zip archive, or a damaged one (its list of entries is too long)"),
    ],
)
def test_an_archive_beyond_a_limit_is_refused(
    limit: str, value: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = with_entries(tmp_path / "a.zip", ("tiny/fit.json", b"0123456789"))
    monkeypatch.setattr(unbundle, limit, value)
    with pytest.raises(StudyError) as raised:
        unpack(archive, tmp_path / "out", quiet)
    assert str(raised.value) == f"{archive}: {words}"
    assert list(tmp_path.iterdir()) == [archive]


def test_a_bomb_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    archive = with_entries(tmp_path / "a.zip", ("tiny/fit.json", bytes(10**7)))
    with pytest.raises(StudyError, match=r"unpacked it has 10001001 bytes; allowed: up to \d+$"):
        unpack(archive, tmp_path / "out", quiet)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_bundle_is_compressed_by_deflate_alone(method: int, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="it is encrypted, or compressed by another method than deflate"):
        unpack(with_entries(tmp_path / "a.zip", method=method), tmp_path / "out", quiet)


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def altered(content: bytes) -> bytes:
    """The same archive with one changed byte in a file."""
    return content.replace(b"0123456789", b"0123456788")


@pytest.mark.parametrize("damage", [cut, altered])
def test_a_damaged_archive_leaves_nothing(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    archive = with_entries(tmp_path / "a.zip", ("tiny/timings.csv", b"0123456789"), method=zipfile.ZIP_STORED)
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(StudyError, match="not a zip archive, or a damaged one"):
        unpack(archive, tmp_path / "out", quiet)
    assert list(tmp_path.iterdir()) == [archive]


@pytest.mark.parametrize(("archive", "folder"), [("a.zip", "a"), ("b/a", "b/a.unpacked"), (".", "..unpacked")])
def test_a_bundle_unpacks_beside_itself_under_its_own_name(archive: str, folder: str) -> None:
    assert folder_of(Path(archive)) == Path(folder)


def test_an_archive_of_something_else_is_no_bundle(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        zipped.writestr("tiny/plan.json", "{}")
    with pytest.raises(StudyError, match=f"not a bundle: it holds no {METADATA}, or no <study>/plan.json"):
        unpack(tmp_path / "a.zip", tmp_path / "out", quiet)


def test_what_exists_is_never_replaced_not_even_a_link_to_nothing(tmp_path: Path) -> None:
    archive = with_entries(tmp_path / "a.zip")
    (tmp_path / "out").symlink_to(tmp_path / "gone")
    with pytest.raises(StudyError, match="it exists already, and nothing is replaced"):
        unpack(archive, tmp_path / "out", quiet)
    assert not (tmp_path / "gone").exists()


def test_a_bundle_lies_unpacked_for_as_long_as_it_is_read(tmp_path: Path) -> None:
    archive = with_entries(tmp_path / "a.zip")
    with as_folders([archive, tmp_path], quiet) as (unpacked, folder):
        assert folder == tmp_path
        assert unpacked.name == "a.zip"
        assert (unpacked / "tiny" / "plan.json").is_file()
    assert not unpacked.exists()


def test_every_file_of_a_bundle_has_a_name_that_any_disk_can_hold() -> None:
    wrong = ("../plan.json", "/plan.json", ".a/plan.json", "a b/plan.json", "a/records/x/y.json", "plan.json\n")
    for name in (*wrong, "a\\plan.json"):
        assert kind_of(name) is None, name
    assert kind_of("a/plan.json")
