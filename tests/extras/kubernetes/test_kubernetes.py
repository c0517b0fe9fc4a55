"""Runs as jobs of Kubernetes: no cluster can be started here, so a ``kubectl`` of the test's own takes the jobs.

It refuses what the schema of Kubernetes refuses, and runs a pod's command on this machine.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from study.base.files import ROOT
from study.config.selection import MachineClass
from tests.workflow.conftest import copy_checkout
from tests.workflow.test_clusters import NEEDS_CLUSTER_SYNC
from tests.workflow.test_clusters import command as snakemake

pytestmark = pytest.mark.thorough

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate (`make dev`)")
VERSIONS = ("1.30", "1.33", "1.37")
PROFILE = "study_extras/kubernetes"
SUBMIT = ROOT / PROFILE / "submit.py"
CONSTRAINT = "cloud.example/accelerator=a100"
KUBECTL = f"""#!{sys.executable}
import json, pathlib, subprocess, sys
import kubernetes_validate
here = pathlib.Path(__file__).parent
with open(here / "calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
verb, *rest = sys.argv[1:]
if verb == "create":
    job = json.load(sys.stdin)
    for version in {VERSIONS}:
        kubernetes_validate.validate(job, version, strict=True)
    name = f"job.batch/study-{{len(list(here.glob('*.json')))}}"
    (here / (name.replace("/", "-") + ".json")).write_text(json.dumps(job))
    print(name)
elif verb == "get":
    job = json.loads((here / (rest[0].replace("/", "-") + ".json")).read_text())
    if (here / "never").exists():
        print("{{}}")
    else:
        (container,) = job["spec"]["template"]["spec"]["containers"]
        done = subprocess.run(container["command"], stdout=sys.stderr)
        print(json.dumps({{"status": {{"failed" if done.returncode else "succeeded": 1}}}}))
elif verb == "logs":
    print("what the pod said")
"""


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a kubectl that runs each job here; a file ``never`` in it keeps jobs from ending."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").write_text(KUBECTL)
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def submit(script: Path, body: str, **asked: str | int) -> list[str]:
    """The command that submits ``body`` as Snakemake writes it."""
    resources = {"mem_mb": 16000, "runtime": 10, "gpu": 1, "constraint": CONSTRAINT} | asked
    properties = {"threads": 8, "resources": resources}
    script.write_text(f"#!/bin/sh\n# properties = {json.dumps(properties)}\n{body}\n")
    return [sys.executable, str(SUBMIT), str(script)]


def test_a_job_asks_for_what_the_run_needs_and_is_gone_after_it(kubectl: Path, tmp_path: Path) -> None:
    subprocess.run(submit(tmp_path / "run.sh", f"touch {tmp_path}/done"), check=True)
    assert (tmp_path / "done").is_file()
    job = json.loads((kubectl / "job.batch-study-0.json").read_text())
    pod = job["spec"]["template"]["spec"]
    assert job["spec"]["activeDeadlineSeconds"] == 600
    assert pod["nodeSelector"] == {"cloud.example/accelerator": "a100"}
    limits = {"cpu": "8", "memory": "16000M", "nvidia.com/gpu": "1"}
    assert pod["containers"][0]["resources"] == {"requests": limits, "limits": limits}
    assert (kubectl / "calls").read_text().splitlines()[-1].startswith("delete job.batch/study-0 ")


def test_a_job_that_fails_fails_with_its_log_and_is_gone(kubectl: Path, tmp_path: Path) -> None:
    command = submit(tmp_path / "run.sh", "exit 3", constraint="")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "what the pod said" in done.stderr) == (1, True)
    assert (
        "nodeSelector" not in json.loads((kubectl / "job.batch-study-0.json").read_text())["spec"]["template"]["spec"]
    )
    assert (kubectl / "calls").read_text().splitlines()[-1].startswith("delete job.batch/study-0 ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_interrupted_deletes_its_jobs(kubectl: Path, tmp_path: Path, number: int) -> None:
    (kubectl / "never").touch()
    process = subprocess.Popen(submit(tmp_path / "run.sh", ""))
    calls = kubectl / "calls"
    end = time.monotonic() + 60
    while not (calls.exists() and "\nget" in calls.read_text()) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert calls.read_text().splitlines()[-1].startswith("delete job.batch/study-0 ")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"constraint": "a100"}, "machines: constraint: 'a100' is not allowed; allowed: a label of nodes, KEY=VALUE"),
        ({"nodes": 2}, "a run on two machines is not possible with Kubernetes"),
    ],
)
def test_what_kubernetes_cannot_give_is_refused_before_a_job_is_made(
    kubectl: Path, tmp_path: Path, asked: dict[str, str | int], words: str
) -> None:
    command = submit(tmp_path / "run.sh", "", **asked)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, words in done.stderr) == (1, True)
    assert not (kubectl / "calls").exists()


@NEEDS_CLUSTER_SYNC
@pytest.mark.timeout(900)
def test_the_profile_measures_each_run_in_a_job(kubectl: Path, tmp_path: Path) -> None:
    plain = copy_checkout(tmp_path / "checkout")  # a name that is easy: executors do not quote it
    plain.study("tiny", factors={"machine": ["any", "labelled"]}, curve=None, replicates=1)
    classes = {"any": {}, "labelled": MachineClass(constraint=CONSTRAINT).model_dump(exclude_none=True)}
    options = ["--profile", PROFILE, "--set-threads", "measure=1"]
    done = plain.run(snakemake(options, f"machines={json.dumps(classes)}"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {record.outcome for record in plain.measured().values()} == {"ok"}
    pods = [json.loads(path.read_text())["spec"]["template"]["spec"] for path in kubectl.glob("*.json")]
    assert sorted(str(pod.get("nodeSelector")) for pod in pods) == [
        "None",
        "{'cloud.example/accelerator': 'a100'}",
    ]
    assert {pod["containers"][0]["resources"]["limits"]["cpu"] for pod in pods} == {"1"}


def test_a_pod_has_the_base_image_of_the_images() -> None:
    (base,) = re.findall(r"^ARG BASE_IMAGE=(.+)$", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    job = yaml.safe_load((SUBMIT.parent / "job.yaml").read_text())
    assert [container["image"] for container in job["spec"]["template"]["spec"]["containers"]] == [base]
