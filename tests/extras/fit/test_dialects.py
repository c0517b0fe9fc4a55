"""Tables as spreadsheets and programs of other countries write them: read as what they say, or refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import study
from study.base.errors import StudyError
from study.cli import main
from study_extras.fit.rate import is_rate
from study_extras.fit.table import Columns, checked_table
from study_extras.fit.text import read_csv
from tests.conftest import repeats
from tests.extras.fit.test_fit import BLOG, TIMES, fit

SEMICOLONS = BLOG.replace(",", ";")
GERMAN = SEMICOLONS.replace(".", ",")
SAME: dict[str, bytes] = {
    "semicolons": SEMICOLONS.encode(),
    "tabs": BLOG.replace(",", "\t").encode(),
    "bars": BLOG.replace(",", "|").encode(),
    "spaces": BLOG.replace(",", "   ").encode(),
    "decimal commas": GERMAN.encode(),
    "decimal commas after tabs": GERMAN.replace(";", "\t").encode(),
    "quoted decimal commas": BLOG.replace(".", ",").replace("\n", '"\n').replace(",", ',"', 1)
    .replace("\n16,", '\n16,"').replace("\n32,", '\n32,"').replace("\n64,", '\n64,"')
    .replace("\n128,", '\n128,"').replace("\n256,", '\n256,"').encode(),
    "UTF-16": BLOG.encode("utf-16"),
    "UTF-16 without its mark": GERMAN.encode("utf-16-le"),
    "a line that names the separator": b"sep=;\r\n" + GERMAN.replace("\n", "\r\n").encode(),
    "Windows-1252": SEMICOLONS.replace("\n", ";größe\n", 1).replace("0\n", "0;1\n").replace("4\n", "4;1\n")
    .replace("8\n", "8;1\n").replace("2\n", "2;1\n").replace("5\n", "5;1\n").encode("cp1252"),
    "a comma in a name": b"batch_size;seconds;of 3, mean\n16;9,44;a\n32;10,5;a\n64;7,18;a\n128;10,52;a\n256;11,35;a\n",
}  # fmt: skip


@pytest.mark.parametrize("dialect", SAME)
def test_a_dialect_of_the_blogs_table_says_the_same(dialect: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(SAME[dialect])
    assert main(["fit", str(tmp_path / "t.csv"), "--output", str(tmp_path / "t.json")]) == 0
    assert json.loads((tmp_path / "t.json").read_text()) == fit(tmp_path / "plain.csv", BLOG)


def test_what_was_found_out_about_a_file_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_bytes(GERMAN.encode("utf-16"))
    assert main(["fit", str(tmp_path / "t.csv")]) == 0
    assert capsys.readouterr().out.startswith("t.csv: UTF-16, separated by semicolons, decimal commas.\n\nThe points")


def test_a_mark_that_may_be_of_thousands_is_what_the_user_says(tmp_path: Path) -> None:
    text = "batch_size;seconds\n16;1,234\n32;2,345\n"
    with pytest.raises(StudyError, match=r"may be 1[.]234 or 1234"):
        fit_path = tmp_path / "t.csv"
        fit_path.write_text(text)
        read_csv(fit_path, "batch_size", "seconds")
    frame, _ = read_csv(fit_path, "batch_size", "seconds", "comma")
    assert list(frame["seconds"]) == ["1.234", "2.345"]


def test_a_rate_is_inverted_where_that_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The slowest size was the fastest with probability 1.00."""
    text = "batch_size,img/s\n" + "".join(f"{b},{r}\n{b},{r + 1}\n" for b, r in ((16, 100), (32, 180), (64, 300)))
    told = fit(tmp_path / "t.csv", text, "--y", "img/s", "--rate")
    assert told["optimum"]["indistinguishable"] == ["64"]
    assert told["notes"] == ["The times are 1/img/s."]
    assert "The times are 1/img/s." in capsys.readouterr().out
    kept = fit(tmp_path / "t.csv", text, "--y", "img/s", "--no-rate")
    assert kept["optimum"]["indistinguishable"] == ["16"]


@pytest.mark.parametrize(
    "name",
    [
        "throughput_img_s",
        "images/sec",
        "Images / Second",
        "img/s",
        "imgs_per_s",
        "imagesPerSecond",
        "samples_per_second",
    ]
    + ["it/s", "its_s", "tokens_s", "fps", "FPS", "Throughput", "train_speed", "MB/s", "img s^-1", "img·s⁻¹", "1/s"]
    + ["steps per minute", "items/h", "speedup", "TFLOPS", "bandwidth_gb", "samples/sec/gpu", "rate", "Durchsatz"]
    + ["thpt", "thruput", "tput_mean", "MFU", "gpu_util", "scaling efficiency", "valid_accuracy"],
)
def test_a_rate_is_known_by_its_name(name: str) -> None:
    assert is_rate(name)


@pytest.mark.parametrize(
    "name",
    ["seconds", "fit_seconds", "step_s", "step_ms", "s/it", "ms/step", "seconds per epoch", "time", "epoch_time", "t"]
    + ["time_per_image", "wall", "s_per_img", "latency_ms", "Zeit", "elapsed", "iteration time (s)", "batch_s", "0"],
)
def test_a_time_is_no_rate_by_its_name(name: str) -> None:
    assert not is_rate(name)


def test_each_level_has_a_curve_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(16, 9, "a", "cpu"), (32, 8, "a", "cpu"), (16, 3, "b", "cpu"), (32, 2, "b", "cpu"), (16, 1, "b", "gpu")]
    text = "batch_size,seconds,net,device\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    groups = fit(tmp_path / "t.csv", text, "--by", "net", "--by", "device")["groups"]
    assert [group["levels"] for group in groups] == [
        {"net": "a", "device": "cpu"}, {"net": "b", "device": "cpu"}, {"net": "b", "device": "gpu"}
    ]  # fmt: skip
    alone = fit(tmp_path / "a.csv", "batch_size,seconds\n16,9\n32,8\n")
    assert {key: value for key, value in groups[0].items() if key != "levels"} == alone
    assert groups[2]["error"].startswith("--x: t.csv, net b, device gpu has 1 row(s)")
    said = capsys.readouterr().out
    assert "net a, device cpu\n-----------------\n" in said
    assert "No curve: --x: t.csv, net b, device gpu has 1 row(s)" in said


def test_rows_of_pooled_levels_are_repetitions_and_that_is_said(tmp_path: Path) -> None:
    text = "batch_size,seconds,host\n16,9,a\n32,8,a\n16,9.1,b\n32,8.1,b\n"
    told = fit(tmp_path / "t.csv", text, "--pool", "host")
    assert told["notes"] == ["Not used, though they vary: host."]
    assert study.fit(TIMES.assign(host=list("aabba")), pool=["host"]).notes == ("Not used, though they vary: host.",)


def test_what_was_measured_beside_the_time_is_named_alone(tmp_path: Path) -> None:
    text = "batch_size,seconds,accuracy,epoch steps,net\n16,9,0.91,63,a\n32,8,0.92,32,a\n16,9.1,0.90,63,a\n"
    told = fit(tmp_path / "t.csv", text)
    assert told["notes"] == ["Not used, though they vary: accuracy, epoch steps."]


def test_a_column_without_a_name_is_told_by_its_place(tmp_path: Path) -> None:
    """pandas writes its index so."""
    told = fit(tmp_path / "t.csv", ",batch_size,seconds\n0,16,9\n1,32,8\n2,16,9.1\n")
    assert told["notes"] == ["Not used, though they vary: column 1."]


def test_a_table_is_never_replaced_by_what_it_determines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(BLOG)
    assert main(["fit", str(tmp_path / "t.csv"), "--output", "t.csv"]) == 1
    assert "--output: 't.csv' is not allowed: it is the table that is read" in capsys.readouterr().err
    assert Path("t.csv").read_text() == BLOG


NUMBERS = st.one_of(
    st.integers(1, 5000).map(str),
    st.floats(0.01, 5000).map(lambda value: f"{value:.2f}"),
    st.floats(0.01, 5000).map(lambda value: f"{value:.3f}"),
    st.floats(0.01, 5000).map(repr),
)


@st.composite
def dialects(draw: st.DrawFn) -> tuple[bytes, list[tuple[float, float]]]:
    """Return a file in any dialect, and the numbers that its writer meant."""
    separator, decimal = draw(
        st.sampled_from([(",", "."), (";", ","), (";", "."), ("\t", ","), ("\t", "."), ("|", ",")])
    )
    thousands = draw(st.sampled_from(["", "", "", ",", "."]))
    rows = draw(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=8))
    # Times that all look like 1.234 are read so: programs write three digits, and few mean thousands of seconds.
    assume(thousands != "." or any(float(y) < 1000 for _, y in rows))

    def written(number: str) -> str:
        whole, point, rest = number.partition(".")
        grouped = f"{int(whole):,}".replace(",", thousands) if thousands != decimal else whole
        text = grouped + point.replace(".", decimal) + rest
        return f'"{text}"' if separator in text or draw(st.booleans()) else text

    note = draw(st.sampled_from(["", "größe", "a, b; c", "é"]))
    lines = [["batch_size", "seconds"], *([written(x), written(y)] for x, y in rows)]
    if note:
        lines = [[*line, f'"{note}"'] for line in lines]
    end = draw(st.sampled_from(["\n", "\r\n", "\n\n", "\r"]))
    text = draw(st.sampled_from(["", f"sep={separator}\n", "\n"])) + end.join(separator.join(line) for line in lines)
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"]))
    return text.encode(encoding), [(float(x), float(y)) for x, y in rows]


def test_no_dialect_changes_a_number_in_silence(tmp_path: Path) -> None:
    path, read = tmp_path / "t.csv", []

    @settings(
        max_examples=len(repeats(200, 5000)), derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(dialects())
    @example((b"batch_size\tseconds\n1\t1\n2\t1.000", [(1.0, 1.0), (2.0, 1000.0)]))
    @example((b"batch_size;seconds\n1.024;9\n2.048;8", [(1024.0, 9.0), (2048.0, 8.0)]))
    @example((b"batch_size;seconds\n16;9,44\n1.024;8,1\n", [(16.0, 9.44), (1024.0, 8.1)]))
    def says_what_its_writer_meant(case: tuple[bytes, list[tuple[float, float]]]) -> None:
        content, meant = case
        path.write_bytes(content)
        try:
            table, _ = checked_table(read_csv(path, "batch_size", "seconds")[0], Columns(), path.name, "--")
        except StudyError:
            return
        read.append(1)
        assert list(zip(table["x"], table["y"], strict=True)) == meant

    says_what_its_writer_meant()
    assert len(read) > len(repeats(200, 5000)) / 3


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """Return a table of several models, of which each was measured at two sizes at least, and their names."""
    levels = draw(
        st.lists(st.text("abcXYZ19 -", min_size=1, max_size=6).map(str.strip), min_size=2, max_size=4, unique=True)
    )
    rows = [
        (size, draw(st.integers(1, 99)), level)
        for level in levels
        for size in draw(st.sets(st.sampled_from([8, 16, 32, 64]), min_size=2))
    ]
    rows = draw(st.permutations(rows))
    return "batch_size,seconds,net\n" + "".join(f'{x},{y},"{net}"\n' for x, y, net in rows), levels


def test_no_two_models_are_one_curve(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"

    @settings(
        max_examples=len(repeats(200, 5000)), derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(mixtures())
    def is_refused(case: tuple[str, list[Any]]) -> None:
        path.write_text(case[0])
        with pytest.raises(StudyError, match="column 'net' varies"):
            checked_table(read_csv(path, "batch_size", "seconds")[0], Columns(), path.name, "--")

    is_refused()
