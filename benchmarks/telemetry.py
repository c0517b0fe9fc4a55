"""What telemetry costs: the sampler's CPU seconds over its wall seconds, as a share of one core.

``python -m benchmarks.telemetry [--seconds 20] [--children 8] [--device cuda]``. The children stand for the workers of
a loader: they sleep, because what a sampler reads of a process costs the same whatever that process does. Start-up of
the sampler is left out of the share, and printed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from study.artifacts.telemetry import read_samples
from study.training.instruments.sampler import sampling


def cpu_seconds(process: psutil.Process) -> float:
    """CPU that a process has used since its start."""
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(path: Path, device: str, seconds: float) -> None:
    """Print the share of a sampler that watches this process for ``seconds``."""
    others = {child.pid for child in psutil.Process().children()}
    with sampling(path, int(device == "cuda")):
        time.sleep(2)  # imports, and the driver's first answer
        found = [child for child in psutil.Process().children() if child.pid not in others]
        if not found:
            raise SystemExit("the sampler did not start")
        sampler, begin = found[0], time.perf_counter()
        before = cpu_seconds(sampler)
        time.sleep(seconds)
        used, wall = cpu_seconds(sampler) - before, time.perf_counter() - begin
    rate = 1 / np.median(np.diff(read_samples(path)["seconds"]))
    processes = len(psutil.pids())
    print(f"sampler: {used:.2f} s of CPU in {wall:.1f} s, {used / wall:.2%} of one core, {rate:.1f} samples a second")
    print(
        f"with {len(others)} children, {processes} processes and {os.cpu_count()} CPUs; start-up {before:.2f} s of CPU"
    )


def main() -> None:
    """Start the children, measure, end them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--children", type=int, default=8)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    sleep = [sys.executable, "-c", "import time; time.sleep(3600)"]
    children = [subprocess.Popen(sleep) for _ in range(options.children)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder) / "samples.csv", options.device, options.seconds)
    finally:
        for child in children:
            child.kill()
            child.wait()


if __name__ == "__main__":
    main()
