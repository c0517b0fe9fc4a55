"""``python -m study fit FILE.csv``: what a table that nobody here made determines."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from study.base.files import ROOT
from study.cli import main

BLOG = "batch_size,seconds\n16,9.44\n32,10.50\n64,7.18\n128,10.52\n256,11.35\n"


def fit(path: Path, *arguments: str) -> dict[str, object]:
    output = path.with_suffix(".json")
    assert main(["fit", str(path), *arguments, "--output", str(output)]) == 0
    values: dict[str, object] = json.loads(output.read_text())
    return values


def test_the_blogs_five_points_support_a_constant_and_no_alpha(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not what scipy prints, unbounded: c = -4228 with an error of 9e7."""
    (tmp_path / "blog.csv").write_text(BLOG)
    found = fit(tmp_path / "blog.csv", "--x", "batch_size", "--y", "seconds")
    said = capsys.readouterr().out
    assert found["best"] == "constant"
    assert found["verdict"] == {"kind": "unreplicated", "law": None}
    models: dict[str, dict[str, object]] = found["models"]  # type: ignore[assignment]
    assert models["power"]["reported"] is False
    assert models["power"]["aicc"] is None
    assert models["power"]["alpha_interval"] == [None, None]
    assert models["power"]["coefficients"]["c"] >= 0  # type: ignore[index]
    assert models["constant"]["coefficients"] == {"T0": pytest.approx(9.798)}
    assert found["optimum"] is None
    assert "no law beats a constant" in said
    assert "undefined" in said
    assert "no finding" in said
    assert "4228" not in said


def test_a_planted_alpha_of_a_half_is_reported_within_its_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(7)
    sizes = np.repeat([8, 16, 32, 64, 128, 256, 512], 6)
    seconds = (5 + 15 * (16 / sizes) ** 0.5) * np.exp(rng.normal(0, 0.02, len(sizes)))
    rows = "\n".join(f"{size},{time}" for size, time in zip(sizes, seconds, strict=True))
    (tmp_path / "half.csv").write_text(f"b,t\n{rows}\n")
    found = fit(tmp_path / "half.csv", "--x", "b", "--y", "t")
    power = found["models"]["power"]  # type: ignore[index]
    assert power["reported"]
    assert power["alpha_interval"][0] <= 0.5 <= power["alpha_interval"][1]
    assert found["optimum"]["indistinguishable"][-1] == "512"  # type: ignore[index]
    assert "95% of alpha" in capsys.readouterr().out


def test_blocks_that_are_named_are_taken_out(tmp_path: Path) -> None:
    """The machine was twice as slow in the second half: the law is the same all the same."""
    sizes = [16, 32, 64, 128, 256]
    rows = [f"{size},{(5 + 240 / size) * factor},{block}" for block, factor in ((1, 1.0), (2, 2.0)) for size in sizes]
    (tmp_path / "t.csv").write_text("batch_size,seconds,day\n" + "\n".join(rows) + "\n")
    found = fit(tmp_path / "t.csv", "--block", "day")
    assert found["degrees_of_blocks"] == 1
    values = found["models"]["inverse"]["coefficients"]  # type: ignore[index]
    assert values["A"] / values["T0"] == pytest.approx(240 / 5, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (BLOG, ["--x", "size"], "--x: t.csv has no column 'size'; allowed: batch_size, seconds"),
        (BLOG, ["--y", "time"], "--y: t.csv has no column 'time'"),
        (BLOG, ["--block", "day"], "--block: t.csv has no column 'day'"),
        ("batch_size,seconds\n16,fast\n32,2\n", [], "line 2, column 'seconds': 'fast' is not allowed"),
        (
            "batch_size,seconds\n16,1\n32,-2\n",
            [],
            "line 3, column 'seconds': '-2' is not allowed: give a number above 0",
        ),
        ("batch_size,seconds\n16,1\n32,\n", [], "line 3, column 'seconds': 'nan' is not allowed"),
        ("batch_size,seconds\n0,1\n32,2\n", [], "line 2, column 'batch_size': '0' is not allowed"),
        ("batch_size,seconds\n16,1\n", [], "has 1 row(s) with 1 value(s) of 'batch_size'"),
        ("batch_size,seconds\n16,1\n16,2\n", [], "has 2 row(s) with 1 value(s) of 'batch_size'"),
        ("batch_size,seconds\n", [], "has 0 row(s) with 0 value(s)"),
        ("", [], "t.csv: cannot be read as a table"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line(
    text: str, arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text(text)
    assert main(["fit", str(tmp_path / "t.csv"), *arguments]) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_ten_thousand_rows_are_fitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    sizes = np.tile([16, 32, 64, 128, 256], 2000)
    seconds = (5 + 240 / sizes) * np.exp(rng.normal(0, 0.1, len(sizes)))
    rows = "\n".join(f"{size},{time}" for size, time in zip(sizes, seconds, strict=True))
    (tmp_path / "many.csv").write_text(f"batch_size,seconds\n{rows}\n")
    assert fit(tmp_path / "many.csv")["observations"] == 10_000


def test_it_imports_no_torch(tmp_path: Path) -> None:
    (tmp_path / "blog.csv").write_text(BLOG)
    call = f"main(['fit', {str(tmp_path / 'blog.csv')!r}])"
    program = f"import sys; from study.cli import main; {call}; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
