"""The workflow as a module of another Snakefile, as snakedeploy writes one."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.workflow.conftest import Checkout

pytestmark = pytest.mark.thorough

MODULE = """
module {name}:
    snakefile:
        {snakefile!r}
    config:
        {config}
"""
EVERY_RULE = "use rule * from study\n"
CONFIG = {
    "studies": ["tiny"], "container": "none", "warm_up_run": False, "quiet_wait_seconds": 0,
    "overrides": {"training.batch_size": [16]},
}  # fmt: skip


@pytest.fixture
def deployed(ready: Checkout, tmp_path: Path) -> Checkout:
    """A folder with its own configuration and studies, and with the data and weights of the
    checkout's tiny study."""
    own = Checkout(tmp_path / "a folder of my own")
    shutil.copytree(ready.root / "workflow" / "profiles", own.root / "workflow" / "profiles")
    shutil.copytree(ready.root / "results", own.root / "results")
    (own.root / "config" / "studies").mkdir(parents=True)
    (own.root / "config" / "config.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    own.study("tiny", title="My own title")
    use(own, module(ready), EVERY_RULE)
    return own


def module(checkout: Checkout, name: str = "study", config: str = "config") -> str:
    """The words that declare the workflow of a checkout as a module."""
    return MODULE.format(
        name=name, snakefile=str(checkout.root / "workflow" / "Snakefile"), config=config
    )


def use(own: Checkout, *parts: str) -> None:
    """Write the Snakefile of a folder: its configuration, and then these parts."""
    text = "\n".join(['configfile: "config/config.yaml"', *parts])
    (own.root / "workflow" / "Snakefile").write_text(text, encoding="utf-8")


def start(own: Checkout, *arguments: str, code: int = 0) -> str:
    """Start Snakemake in a folder, which ends with this exit code; what it said."""
    done = own.python("snakemake", "--cores", "1", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_configuration_and_the_studies_of_the_folder_count(
    deployed: Checkout, ready: Checkout
) -> None:
    said = start(deployed)
    assert [name.split(".")[0] for name in deployed.records()] == ["bs16-cpu-r1"]
    assert "My own title" in deployed.page()
    assert "report  file://" in said
    assert "make study" not in said  # there is no Makefile
    assert not ready.records()
    again = start(deployed)
    assert "nothing is left to do" in again


def test_the_checkouts_studies_count_where_the_folder_has_none(
    deployed: Checkout, ready: Checkout
) -> None:
    shutil.rmtree(deployed.root / "config" / "studies")
    ready.study("theirs", title="Their title")
    assert "theirs, block 1 of 1" in start(deployed, "--dry-run", "--config", "studies=[theirs]")
