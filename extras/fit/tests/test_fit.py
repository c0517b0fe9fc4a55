"""``python -m study fit FILE.csv``: what a table that nobody here made determines."""

import doctest
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import study
import study_fit.laws
from study.base.files import ROOT
from study.cli import main

BLOG = "batch_size,seconds\n16,9.44\n32,10.50\n64,7.18\n128,10.52\n256,11.35\n"
TIMES = pd.read_csv(io.StringIO(BLOG))


def fit(path: Path, text: str, *arguments: str) -> dict[str, Any]:
    """What the verb writes of a table with this text."""
    path.write_text(text, encoding="utf-8")
    output = path.with_suffix(".json")
    assert main(["fit", str(path), *arguments, "--output", str(output)]) == 0
    values: dict[str, Any] = json.loads(output.read_text())
    return values


def text_of(**columns: Any) -> str:
    """A table with these columns."""
    return pd.DataFrame(columns).to_csv(index=False)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "t.csv"


def test_the_blogs_five_points_support_a_constant_and_no_alpha(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not what scipy prints, unbounded: c = -4228 with an error of 9e7."""
    found = fit(table, BLOG, "batch_size", "seconds")
    said = capsys.readouterr().out
    assert (found["best"], found["optimum"]) == ("constant", None)
    assert (found["verdict"]["kind"], found["verdict"]["reason"]) == ("undetermined", "replicates")
    power = found["models"]["power"]
    assert (power["reported"], power["aicc"]) == (False, None)
    assert power["alpha_interval"] == [None, None]
    assert power["coefficients"]["c"] >= 0
    assert found["models"]["constant"]["coefficients"] == {"T0": pytest.approx(9.680, abs=0.001)}
    assert all(words in said for words in ("without replicates", "undefined", "no finding"))
    assert "4228" not in said


def test_a_planted_alpha_of_a_half_is_reported_within_its_interval(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(2)
    sizes = np.repeat([8, 16, 32, 64, 128, 256, 512], 6)
    seconds = (5 + 15 * (16 / sizes) ** 0.5) * np.exp(rng.normal(0, 0.02, len(sizes)))
    found = fit(table, text_of(b=sizes, t=seconds), "b", "t")
    power = found["models"]["power"]
    assert power["reported"]
    assert power["alpha_interval"][0] <= 0.5 <= power["alpha_interval"][1]
    assert found["optimum"]["indistinguishable"][-1] == "512"
    assert "alpha = 0.5" in capsys.readouterr().out


def test_blocks_that_are_named_are_taken_out(table: Path) -> None:
    """The machine was twice as slow in the second half: the law is the same all the same."""
    sizes, day = np.tile([16, 32, 64, 128, 256], 2), np.repeat([1, 2], 5)
    text = text_of(batch_size=sizes, seconds=(5 + 240 / sizes) * day, day=day)
    found = fit(table, text, "--block", "day")
    assert "block" in found["spreads"]
    values = found["models"]["power"]["coefficients"]
    assert values["c"] / values["Tmin"] == pytest.approx(240 / 5, rel=1e-3)


FEW = "batch_size,seconds\n"
UNREAD = "t.csv: pandas.read_csv cannot read it: "
DAYS = "batch_size,seconds,day\n"
DEVICES = "batch_size,seconds,device\n16,9,cpu\n32,8,cpu\n16,2,gpu\n32,1,gpu\n"
MIXED = "is not used, and one curve would mix its levels: fit each alone, or"
APART = "16 and 64 share none, nor does a chain of blocks join them"
THOUSANDS = "batch_size;seconds\n512;9\n1,024;8\n"
REFUSED: dict[str, tuple[str, str, str]] = {
    "unknown x": (BLOG, "size", "x: the table has no column 'size'; allowed: batch_size, seconds"),
    "unknown y": (BLOG, "batch_size time", "y: the table has no column 'time'"),
    "unknown block": (BLOG, "--block day", "block: the table has no column 'day'"),
    "unknown session": (BLOG, "--session day", "session: the table has no column 'day'"),
    "unknown pool": (BLOG, "--pool net", "pool: the table has no column 'net'"),
    "one column twice": (BLOG, "seconds", "y: 'seconds' is x already: name another column"),
    "text": (
        FEW + "16,fast\n",
        "",
        "'fast' is not allowed: give a number above 0",
    ),
    "negative": (FEW + "16,1\n32,-2\n", "", "row 1, column 'seconds': "),
    "no time": (FEW + "16,1\n32,\n", "", "row 1, column 'seconds': "),
    "zero": (FEW + "0,1\n32,2\n", "", "row 0, column 'batch_size': "),
    "infinite": (FEW + "16,1\n32,inf\n", "", "row 1, column 'seconds': "),
    "huge": (FEW + "16,1e200\n32,2\n", "", "is not allowed: give 1e-09 to 1e+12"),
    "400 digits": (FEW + f"16,1\n32,{'9' * 400}\n", "", "row 1, column 'seconds': "),
    "decimal commas": (FEW + "16,9,44\n32,7,18\n", "", f"{UNREAD}Length of header"),
    "long row": (FEW + "16,1\n32,2,3\n", "", UNREAD),
    "open quote": (FEW + '16,1\n32,"2\n64,3\n', "", UNREAD),
    "thousands": (THOUSANDS, "--read sep=;", "'1,024' is not allowed: give a number"),
    "unknown option": (BLOG, "--read separator=;", "unexpected keyword argument 'separator'"),
    "parts of a table": (BLOG, "--read chunksize=2", "with {'chunksize': 2} gives no table"),
    "devices in one table": (DEVICES, "", f"column 'device' varies (cpu, gpu) and {MIXED}"),
    "a model that ran once": (DAYS + "16,9,a\n32,8,a\n16,2,b\n", "", "'day' varies (a, b)"),
    "days without --block": (DAYS + "16,1,1\n32,2,1\n16,1,2\n32,2,2\n", "", "'day' varies (1, 2)"),
    "no block": (
        DAYS + "16,1,a\n32,2,\n",
        "--block day",
        "row 1, column 'day': nan is not allowed: name",
    ),
    "blank session": (DAYS + "16,1,a\n32,2,  \n", "--session day", "'day': '  ' is not allowed"),
    "blocks go with some x": (
        DAYS + "16,1,a\n32,2,a\n64,3,b\n128,4,b\n",
        "--block day",
        f"block: 'day': blocks go with 'batch_size': {APART}",
    ),
    "one size": (
        FEW + "16,1\n16,2\n",
        "",
        "x: the table has 2 row(s) with 1 value(s) of 'batch_size'",
    ),
    "no row": (FEW, "", "has 0 row(s) with 0 value(s)"),
    "3000 sizes": (
        FEW + "".join(f"{size},{size}\n" for size in range(1, 3001)),
        "",
        "3000 value(s) of 'batch_size'; at most 300 are allowed: choose some, or round them",
    ),
    "empty": ("", "", f"{UNREAD}No columns to parse from file"),
}


@pytest.mark.parametrize("given", REFUSED)
def test_a_table_that_cannot_be_used_is_one_line(
    given: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, arguments, words = REFUSED[given]
    table.write_text(text)
    assert main(["fit", str(table), *arguments.split()]) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_what_is_no_text_file_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "binary.csv").write_bytes(b"batch_size,seconds\n\x81\xff,1\n")
    (tmp_path / "sheet.csv").write_bytes(b"PK\3\4\x14\0\6\0\x08\0\0\0!\0")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "endless.csv").symlink_to("/dev/zero")
    told = dict.fromkeys((".", "pipe.csv", "endless.csv"), "it is not a file")
    told |= {"none.csv": "no such file", "sheet.csv": "the table has no column 'batch_size'"}
    told["binary.csv"] = "pandas.read_csv cannot read it: 'utf-8' codec can't decode"
    for name, words in told.items():
        assert main(["fit", str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_the_options_of_pandas_read_the_table_of_another_country(table: Path) -> None:
    table.write_text(BLOG.replace(",", ";").replace(".", ","), encoding="utf-16")
    plain = table.with_name("plain.csv")
    here = ["--read", "sep=;", "--read", "decimal=,", "--read", "encoding=utf-16"]
    assert main(["fit", str(table), *here, "--output", str(plain.with_suffix(".other"))]) == 0
    assert json.loads(plain.with_suffix(".other").read_text()) == fit(plain, BLOG)
    assert str(study.fit(table, sep=";", decimal=",", encoding="utf-16")) == str(study.fit(plain))


def test_a_rate_is_inverted_where_that_is_asked(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The slowest size was the fastest with probability 1.00."""
    text = "batch_size,img/s\n16,100\n16,101\n32,180\n32,181\n64,300\n64,301\n"
    told = fit(table, text, "batch_size", "img/s", "--rate")
    assert told["optimum"]["indistinguishable"] == ["64"]
    assert told["notes"] == ["The times are 1/img/s."]
    assert "The times are 1/img/s." in capsys.readouterr().out


def test_rows_of_pooled_levels_are_repetitions_and_what_varies_is_named(table: Path) -> None:
    text = (
        "batch_size,seconds,host,accuracy\n16,9,a,0.91\n32,8,a,0.92\n16,9.1,b,0.90\n32,8.1,b,0.92\n"
    )
    told = fit(table, text, "--pool", "host")
    assert told["notes"] == ["Not used, though they vary: host, accuracy."]


def test_a_table_is_never_replaced_by_what_it_determines(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.write_text(BLOG)
    assert main(["fit", str(table), "--output", str(table)]) == 1
    assert "is not allowed: it is the table that is read" in capsys.readouterr().err
    assert table.read_text() == BLOG


def test_equal_times_are_repetitions(table: Path) -> None:
    """A clock in whole seconds repeats itself."""
    found = fit(table, FEW + "16,9\n16,9\n16,10\n32,7\n32,7\n32,7\n64,5\n64,6\n64,5\n")
    assert found["observations"] == 9
    assert found["differs_p"] is not None
    assert found["optimum"] is not None


def test_times_that_are_all_equal_are_not_called_single_runs(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FEW + "".join(f"{size},{time}\n" * 3 for size, time in ((16, 9), (32, 7), (64, 5)))
    assert fit(table, text)["verdict"]["reason"] == "equal_times"
    said = capsys.readouterr().out
    assert "run once" not in said
    assert "one row" not in said


def test_sizes_that_differ_in_the_seventh_digit_stay_apart(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = np.repeat([1000001, 1000002, 2000000], 3)
    found = fit(table, text_of(batch_size=sizes, seconds=sizes / 1e6 + np.tile([0, 0.01, 0.02], 3)))
    assert found["batch_sizes"] == 3
    assert list(found["optimum"]["cost"]) == ["1000001", "1000002", "2000000"]
    assert "1000001: 1.00 times the smallest mean" in capsys.readouterr().out


def test_blocks_of_different_sessions_are_different_blocks(table: Path) -> None:
    """The machine was slower in the second session, whose replicates have the same numbers."""
    sizes, start = np.tile([16, 32, 64, 128], 4), np.repeat([1, 2], 8)
    seconds = (5 + 240 / sizes) * start * np.exp(np.random.default_rng(2).normal(0, 0.01, 16))
    block = np.tile(np.repeat([1, 2], 4), 2)
    text = text_of(batch_size=sizes, seconds=seconds, start=start, replicate=block)
    nested = fit(table, text, "--block", "replicate", "--session", "start")
    assert list(nested["spreads"]) == ["noise", "block", "start"]
    pooled = fit(table, text, "--session", "start", "--pool", "replicate")
    assert list(pooled["spreads"]) == ["noise", "block"]


def test_what_the_times_do_not_determine_is_not_printed(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every interval that is printed the upper end is less than ten times the lower one."""
    fit(table, FEW + "16,9\n32,14\n64,6\n128,9\n16,11\n32,8\n64,12\n128,7\n")
    said = capsys.readouterr().out
    assert "T0 not determined, A not determined" in said
    for low, high in re.findall(r"\(([\d.e-]+) to ([\d.e-]+)\)", said):
        assert float(high) < 10 * float(low)


def test_a_hundred_thousand_rows_in_blocks_are_fitted(table: Path) -> None:
    rng = np.random.default_rng(1)
    sizes, days = np.tile([16, 32, 64, 128, 256], 20_000), np.repeat(range(10), 10_000)
    seconds = (5 + 240 / sizes) * np.exp(rng.normal(0, 0.1, len(sizes)))
    found = fit(table, text_of(batch_size=sizes, seconds=seconds, day=days), "--block", "day")
    assert found["observations"] == 100_000
    assert found["spreads"]["noise"] == pytest.approx(0.1, rel=0.02)


def test_three_hundred_sizes_of_two_rows_each_have_a_law_and_an_optimum(table: Path) -> None:
    rng = np.random.default_rng(1)
    sizes = np.repeat(range(1, 301), 2)
    seconds = (5 + 240 / sizes) * np.exp(rng.normal(0, 0.05, len(sizes)))
    found = fit(table, text_of(batch_size=sizes, seconds=seconds))
    assert (found["observations"], found["batch_sizes"], found["line"]) == (600, 300, "power")
    assert {"step", "power"} <= {*found["alike"]}
    planted = pytest.approx({"Tmin": 5, "c": 240, "alpha": 1}, rel=0.03)
    assert found["models"]["power"]["coefficients"] == planted
    assert found["spreads"]["noise"] == pytest.approx(0.05, rel=0.1)
    tied = [int(size) for size in found["optimum"]["indistinguishable"]]
    assert min(tied) > 20
    assert max(tied) > 290


def test_it_imports_no_torch(table: Path) -> None:
    table.write_text(BLOG)
    call = f"main(['fit', {str(table)!r}])"
    program = f"import sys; from study.cli import main; {call}; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_example_of_the_function_is_true() -> None:
    assert doctest.testmod(study_fit.laws).failed == 0


def test_any_table_is_fitted_as_the_command_fits_a_file(tmp_path: Path) -> None:
    TIMES.to_csv(tmp_path / "blog.csv", index=False)
    command = [sys.executable, "-m", "study", "fit", str(tmp_path / "blog.csv")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert str(study.fit(TIMES)) == said.rstrip("\n")
    assert study.fit(TIMES).optimum is None


def test_an_option_for_a_file_is_refused_beside_a_frame() -> None:
    said = "sep: an option for a file, and the table is a frame"
    with pytest.raises(study.StudyError, match=said):
        study.fit(TIMES, sep=";")
