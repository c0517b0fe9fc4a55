"""The manifest of an earlier search, by whomever it was written: one line says why it is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from study.base.errors import StudyError
from study.cli import main
from study_extras.search.manifest import read_earlier


def pictures(label: str, count: int = 3) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "term": f"{label} photo",
            "url": f"https://a.example/{number}.jpg",
            "bytes": 9,
            "sha256": f"{number:064x}",
            "stored_sha256": "0" * 64,
        }
        for number in range(count)
    ]


def listing(folder: Path, *listed: dict[str, Any], **changes: Any) -> Path:
    """A manifest that lists these pictures."""
    folder.mkdir(exist_ok=True)
    path = folder / "birds.json"
    values = {"max_size": 400, "encoder": "x", "pictures": listed, "left_out": []} | changes
    path.write_text(json.dumps(values), encoding="utf-8")
    return path


def test_a_sound_manifest_is_read(tmp_path: Path) -> None:
    found = read_earlier(listing(tmp_path, *pictures("bird"), *pictures("forest", 2)))
    assert found.counts == {"bird": 3, "forest": 2}


@pytest.mark.parametrize("label", ["..", "../../x", "/etc", "", "a\\b", ".hidden", "con.json", "a\nb"])
def test_a_manifest_of_another_hand_writes_nothing_outside_its_folder(tmp_path: Path, label: str) -> None:
    path = listing(tmp_path, *pictures(label), *pictures("forest"))
    with pytest.raises(StudyError, match="give a name that every system accepts for a folder"):
        read_earlier(path)


@pytest.mark.parametrize(
    ("listed", "changes", "words"),
    [
        ([], {}, "no class"),
        (pictures("bird"), {}, "there is 'bird' alone"),
        ([*pictures("bird"), *pictures("forest", 1)], {}, "class 'forest' has 1 picture; at least two are needed"),
        ([*pictures("bird"), *pictures("forest")], {"max_size": 9}, "max_size"),
        ([*pictures("bird"), *pictures("forest")], {"source": "folder"}, "source"),
        ([pictures("bird")[0] | {"sha256": "../x"}, *pictures("forest")], {}, "sha256"),
    ],
)
def test_a_manifest_that_fills_no_folder_is_refused_in_one_line_without_the_way_to_it(
    listed: list[dict[str, Any]],
    changes: dict[str, Any],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = listing(tmp_path / "alice", *listed, **changes)
    assert main(["search", "--manifest", str(path), "--output", str(tmp_path / "new")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: --manifest: 'birds.json' is not allowed: ")
    assert said.count("\n") == 1
    assert words in said
    assert "alice" not in said
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff", b"[]"])
def test_what_is_no_manifest_is_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StudyError, match=r"--manifest: 'm\.json' is not allowed: "):
        read_earlier(path)
