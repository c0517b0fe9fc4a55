"""Run a job's script of Snakemake in a job of Kubernetes, and wait for its end: ``submit.py SCRIPT``. Needs kubectl.

The script's second line says what the run asks for: ``threads`` and ``resources``.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

PAUSE_SECONDS = 5.0
UNREACHED_SECONDS = 300.0
"""How long the cluster may give no answer before the job counts as failed."""


def asked_for(script: Path) -> dict[str, Any]:
    """Return ``threads`` and the resources of the job that Snakemake wrote ``script`` for."""
    line = script.read_text(encoding="utf-8").splitlines()[1]
    properties = json.loads(line.removeprefix("# properties = "))
    asked: dict[str, Any] = properties["resources"] | {"threads": properties["threads"]}
    if asked.get("nodes", 1) > 1:
        sys.exit("a run on two machines is not possible with Kubernetes; training.strategy: allowed is any other")
    if "=" not in (asked.get("constraint") or "="):
        sys.exit(f"machines: constraint: {asked['constraint']!r} is not allowed; allowed: a label of nodes, KEY=VALUE")
    return asked


def manifest(template: dict[str, Any], script: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the job of ``template`` that executes ``script``, with what the run asks for."""
    job = template["spec"]
    job["activeDeadlineSeconds"] = 60 * asked["runtime"]
    pod = job["template"]["spec"]
    if asked.get("constraint"):
        pod["nodeSelector"] = dict([asked["constraint"].split("=", 1)])
    gpus = {"nvidia.com/gpu": str(asked["gpu"])} if asked.get("gpu") else {}
    # Requests that equal the limits, in whole CPUs: the pod has them for itself under the static CPU manager.
    resources = {"cpu": str(asked["threads"]), "memory": f"{asked['mem_mb']}M"} | gpus
    (container,) = pod["containers"]
    container["command"] = ["/bin/sh", str(script.absolute())]
    container["resources"] = {"requests": resources, "limits": dict(resources)}
    return template


def kubectl(*arguments: str, given: str | None = None) -> str | None:
    """Return what kubectl prints; None if it fails, after it has said why."""
    # A session of its own: Ctrl-C in the terminal reaches this process alone, which then deletes the job.
    done = subprocess.run(
        ["kubectl", *arguments], input=given, stdout=subprocess.PIPE, text=True, check=False, start_new_session=True
    )
    return done.stdout if done.returncode == 0 else None


def outcome(job: str) -> bool:
    """Wait for the end of ``job``, and return whether it succeeded."""
    answered = time.monotonic()
    while time.monotonic() - answered < UNREACHED_SECONDS:
        if (answer := kubectl("get", job, "--output", "json")) is not None:
            answered = time.monotonic()
            status = json.loads(answer).get("status", {})
            if status.get("succeeded") or status.get("failed"):
                return bool(status.get("succeeded"))
        time.sleep(PAUSE_SECONDS)
    print(f"{job}: the cluster gave no answer for {UNREACHED_SECONDS:g} s", file=sys.stderr)
    return False


def stop(number: int, frame: FrameType | None) -> None:
    """End this process by way of what deletes the job."""
    sys.exit(128 + number)


def main() -> int:
    """Return 0 if the script succeeded in its job, and 1 if not."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    script = Path(sys.argv[1])
    template = yaml.safe_load((Path(__file__).parent / "job.yaml").read_text(encoding="utf-8"))
    wanted = json.dumps(manifest(template, script, asked_for(script)))
    created = kubectl("create", "--output", "name", "--filename", "-", given=wanted)
    if created is None:
        return 1
    job = created.strip()
    succeeded = False
    try:
        succeeded = outcome(job)
        if not succeeded:
            print(kubectl("logs", job, "--tail", "50") or f"{job}: no log", file=sys.stderr)
    finally:
        kubectl("delete", job, "--wait=false", "--ignore-not-found")
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
