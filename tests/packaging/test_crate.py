"""What `roc-validator` says of a bundle. It is offline: its cache is given the one document that it would fetch."""

import json
import subprocess
from pathlib import Path

import pytest

from extras.bundle.tests.test_bundle import TERMS, quiet
from study.artifacts.bundle import METADATA, unpack
from study_bundle.write import write_bundle
from tests.conftest import ROOT
from tests.examples import EXAMPLE
from tests.packaging.conftest import environment

pytestmark = pytest.mark.thorough

FILL = """
import io, sys
import requests_cache, urllib3
from requests.adapters import BaseAdapter, HTTPAdapter

class Canned(BaseAdapter):
    def send(self, request, **options):
        body, kind = io.BytesIO(sys.argv[2].encode()), {"Content-Type": "application/ld+json"}
        raw = urllib3.HTTPResponse(body=body, headers=kind, status=200, preload_content=False)
        return HTTPAdapter().build_response(request, raw)
    def close(self):
        pass

session = requests_cache.CachedSession(sys.argv[1], backend="sqlite", expire_after=-1)
session.mount("https://", Canned())
session.get("https://w3id.org/ro/crate/1.1/context").raise_for_status()
"""
"""Gives the validator, which is offline, the context as its cache would hold it."""


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The validator's program, and a cache beside it that holds the context."""
    programs = environment(tmp_path_factory.mktemp("environment"), "roc-validator>=0.13,<0.14")
    context = json.dumps({"@context": TERMS})
    subprocess.run([str(programs / "python"), "-c", FILL, str(programs / "cache"), context], check=True)
    return programs / "rocrate-validator"


def validated(validator: Path, crate: Path, cwd: Path) -> tuple[int, str]:
    """Validate a crate offline against the profile Workflow Run Crate; the exit code, and the words."""
    options = ["--offline", "--cache-path", str(validator.with_name("cache")), "-l", "required", "--no-paging"]
    command = [str(validator), "-y", "--disable-color", "validate", *options, "-p", "workflow-run-crate-0.5", "-v"]
    done = subprocess.run([*command, str(crate)], capture_output=True, text=True, cwd=cwd)
    return done.returncode, " ".join(done.stdout.replace("│", " ").split())


@pytest.mark.timeout(600)
def test_the_validator_accepts_a_bundle_as_a_workflow_run_crate(validator: Path, tmp_path: Path) -> None:
    """The profile includes RO-Crate 1.1, Process Run Crate and Workflow RO-Crate."""
    write_bundle([], EXAMPLE, ROOT, tmp_path / "example.crate.zip", quiet)
    unpack(tmp_path / "example.crate.zip", tmp_path / "damaged", quiet)
    text = (tmp_path / "damaged" / METADATA).read_text(encoding="utf-8")
    (tmp_path / "damaged" / METADATA).write_text(text.replace('"instrument"', '"object"'), encoding="utf-8")
    code, words = validated(validator, tmp_path / "example.crate.zip", tmp_path)
    assert code == 0, words
    assert "RO-Crate is a valid workflow-run-crate-0.5" in words
    code, words = validated(validator, tmp_path / "damaged", tmp_path)
    assert code == 1
    assert "MUST have an instrument property" in words
