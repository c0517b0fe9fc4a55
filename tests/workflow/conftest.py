"""A copy of the checkout in a folder whose name is not easy, and Snakemake in it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT, study_values

PARTS = ("Snakefile", "config", "docker", "profiles", "requirements.lock", "study", "workflow")


@dataclass
class Checkout:
    """A copy of the project that a test may edit."""

    root: Path

    def study(self, name: str, **changes: Any) -> None:
        """Write a study file."""
        path = self.root / "config" / "studies" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(study_values(**changes)), encoding="utf-8")

    def command(self, *config: str, extra: Sequence[str] = ()) -> list[str]:
        """Snakemake as a user calls it."""
        return [
            sys.executable,
            "-m",
            "snakemake",
            "--cores",
            "1",
            *extra,
            "--config",
            "studies=[tiny]",
            "container=none",
            *config,
        ]

    def snakemake(self, *config: str, extra: Sequence[str] = ()) -> "subprocess.CompletedProcess[str]":
        """Run Snakemake to its end."""
        return subprocess.run(
            self.command(*config, extra=extra), cwd=self.root, capture_output=True, text=True, env=environment()
        )

    def good(self, *config: str, extra: Sequence[str] = ()) -> str:
        """Run Snakemake, which must succeed; what it said."""
        done = self.snakemake(*config, extra=extra)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def records(self, study: str = "tiny") -> dict[str, bytes]:
        """Every record, by file name."""
        return {path.name: path.read_bytes() for path in (self.root / "results" / study / "records").glob("*.json")}


def environment() -> dict[str, str]:
    """The environment without what a test runner adds, and without a GPU."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"CUDA_VISIBLE_DEVICES": ""}


def copy_checkout(root: Path) -> Checkout:
    """Copy what a run of the pipeline needs."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            root.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, root / part)
    checkout = Checkout(root)
    checkout.study("tiny")
    return checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A fresh copy for one test."""
    return copy_checkout(tmp_path / 'a "copy" of 研究\'s')
