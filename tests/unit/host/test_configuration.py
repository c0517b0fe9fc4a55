"""The engine that `make study` chooses is that of the configuration which Snakemake itself
reads."""

from pathlib import Path

import pytest

from study.base.errors import StudyError
from study.host.plan.configuration import as_snakemake_reads_it

FILES = {
    "Snakefile": 'configfile: "config.yaml"',
    "config.yaml": "{container: auto, devices: auto, overrides: {replicates: 3}}",
    "one.yaml": "{container: docker, overrides: {seed: 1}, base_image: one}",
    "two.json": '{"container": "podman", "overrides": {"seed": 2}}',
    "list.yaml": "[1, 2]",
    "profiles/default/config.yaml": "quiet: [rules]",
    "mine/config.yaml": "executor: slurm",
    "site/config.yaml": "{quiet: [rules], config: [container=podman, devices=cpu]}",
}


@pytest.fixture
def folder(here: Path) -> Path:
    """A folder with a Snakefile, its configuration, and profiles."""
    for name, text in FILES.items():
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return here


LINES = {
    "": "auto",
    "--configfile one.yaml": "docker",
    "--config container=none devices=[cpu] overrides={seed:7}": "none",
    "--config container=none -C devices=[cpu]": "auto",
    "--config container=podman --configfile one.yaml two.json": "podman",
    "--configfile one.yaml two.json --cores 1 -- all": "podman",
    "--replace-workflow-config --configfile one.yaml": "docker",
    "--profile site": "podman",
    "--profile site --config devices=[cuda]": "auto",
    "--workflow-profile site --configfile one.yaml": "podman",
}


def test_the_configuration_is_what_snakemake_would_hand_to_the_workflow(folder: Path) -> None:
    seen = {line: as_snakemake_reads_it(line.split(), folder / "config.yaml") for line in LINES}
    assert {line: values["container"] for line, values in seen.items()} == LINES


@pytest.mark.parametrize(
    "line",
    [
        *("--config container", "--configfile gone.yaml", "--configfile list.yaml"),
        "--configfile .",
        *("--directory /dev/null", "--no-such-option", "--profile nowhere"),
        *("--workflow-profile mine", "--profile mine", "--executor slurm"),
    ],
)
def test_arguments_that_snakemake_refuses_are_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    with pytest.raises(StudyError) as refused:
        as_snakemake_reads_it(line.split(), folder / "config.yaml")
    assert "\n" not in str(refused.value)
    named = "; read from: " in str(refused.value)
    assert named or "mine" not in line
    assert capsys.readouterr() == ("", "")
