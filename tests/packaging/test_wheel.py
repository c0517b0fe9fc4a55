"""The wheel: what it holds, and what works where it is installed without a checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import study
from study.base import strict_yaml
from tests.conftest import ROOT
from tests.examples import results_of

pytestmark = pytest.mark.thorough

EXAMPLE = results_of("example-h200")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the checkout: a build leaves its own folders beside the sources."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("study", "study_extras", "tests", "benchmarks", "config", "docker", "workflow"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "certificates"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "Snakefile", "requirements.lock"):
        shutil.copy2(ROOT / name, source)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(target)]
    subprocess.run([*PIP, "wheel", str(source), *options], check=True)
    (found,) = target.iterdir()
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed. The dependencies are this interpreter's."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([*PIP, "install", "--no-deps", "--no-index", "--target", str(folder), str(wheel)], check=True)
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A copy of the committed example's smaller study, without what is computed from its records."""
    folder = tmp_path / "results" / "speedup"
    for name in ("records", "telemetry", "weights"):
        shutil.copytree(EXAMPLE / "speedup" / name, folder / name)
    shutil.copy2(EXAMPLE / "speedup" / "plan.json", folder)
    return folder.parent


def execute(installed: Path, command: list[str], cwd: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(installed)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def say(installed: Path, cwd: Path, *arguments: str) -> str:
    """What the installed command prints; it succeeds."""
    done = execute(installed, [str(installed / "bin" / "study"), *arguments], cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_both_packages_with_their_data_and_nothing_else(wheel: Path) -> None:
    packages = (ROOT / "study", ROOT / "study_extras")
    files = {path for each in packages for path in each.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == {path.relative_to(ROOT).as_posix() for path in files}


def test_the_version_is_in_one_place(wheel: Path) -> None:
    citation = strict_yaml.read(ROOT / "CITATION.cff")
    assert wheel.name.startswith(f"training_study-{study.__version__}-")
    assert study.__version__ == citation["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\d.*)$", changelog, re.MULTILINE)
    assert newest and newest[1] == f"{study.__version__} ({citation['date-released']})"
    literals = re.findall(r'^version\b.*"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert literals == []


def test_the_public_interface_reads_the_example_from_another_folder(installed: Path, tmp_path: Path) -> None:
    program = f"""
import json, sys, study
results = study.open({str(EXAMPLE)!r})
one = results["batch-size"]
one.figure("telemetry_cuda").savefig("gpu.png")
print(json.dumps([study.__file__, results.studies, len(one.timings()), len(one.records()),
                  [group.best for group in one.analysis().groups], "torch" in sys.modules]))
"""
    done = execute(installed, [sys.executable, "-c", program], tmp_path)
    assert done.returncode == 0, done.stderr
    home = str(installed / "study" / "__init__.py")
    assert json.loads(done.stdout) == [home, ["batch-size", "speedup"], 50, 50, ["64", "32"], False]
    assert (tmp_path / "gpu.png").stat().st_size > 10_000


def test_the_command_makes_a_report_from_records_anywhere(installed: Path, results: Path, tmp_path: Path) -> None:
    say(installed, tmp_path, "analyse", "speedup", "--results", str(results))
    say(installed, tmp_path, "report", "--from-tables", "speedup", "--results", str(results), "--output", "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "17.5" in page  # CPU over GPU, as the example.s page quotes it
    assert 'class="chart wide"' in page
    assert "<style>" in page


@pytest.mark.parametrize(
    "command",
    ["plan quickstart", "engine", "start", "image plan.json cpu", "measure quickstart 1-00000000"],
)
def test_a_verb_that_needs_the_checkout_says_so(command: str, installed: Path, results: Path, tmp_path: Path) -> None:
    shutil.copy2(results / "speedup" / "plan.json", tmp_path)
    done = execute(installed, [str(installed / "bin" / "study"), *command.split()], tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: this needs a checkout of the project")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
