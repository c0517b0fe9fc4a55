"""What a container costs: start-up over the host, and step time inside against outside.

``python -m benchmarks.containers IMAGE [--python /usr/bin/python3]``. Inside and outside take turns, because a machine
drifts by more than the difference. ``--python`` names the host's interpreter of the image's version: another version
of Python alone changes step times by several percent. It reads this environment's packages.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
from scipy import stats

from study.config.settings import Settings
from study.host.engine import lifetime
from study.host.engine.container import code_mount
from study.host.engine.engine_choice import engine

ROOT = Path(__file__).parent.parent
STEP = """
import json, statistics, sys, time, torch, torchvision
torch.manual_seed(0)
torch.set_num_threads(1)
model = torchvision.models.resnet18(num_classes=2)
optimizer = torch.optim.AdamW(model.parameters())
images, labels = torch.randn(16, 3, 64, 64), torch.randint(0, 2, (16,))
def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
seconds = []
for _ in range(60):
    begin = time.perf_counter()
    step()
    seconds.append(time.perf_counter() - begin)
print(json.dumps([sys.version.split()[0], statistics.median(seconds[10:])]))
"""


def inside(image: str, command: list[str], results: Path) -> list[str]:
    """What a command says in a container that is started as a run's is."""
    with lifetime.scratch_folder(results) as scratch, (results / "log").open("w", encoding="utf-8") as log:
        ended = lifetime.enter(
            engine("docker"), image, command, scratch, [code_mount()], log, "benchmark", settings=Settings()
        )
    if ended.code:
        raise SystemExit("\n".join(ended.tail))
    return ended.tail


def outside(python: str, command: list[str]) -> list[str]:
    """The same on the host, with this environment's packages."""
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), packages])}
    done = subprocess.run([python, *command], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def start_up(image: str, python: str, results: Path, rounds: int) -> None:
    """Seconds from the launcher's call to its return, of a process that imports the training code and ends."""
    code = ["-c", "import study.training.job"]
    pairs = [
        (timed(lambda: inside(image, ["python", *code], results)), timed(lambda: outside(python, code)))
        for _ in range(rounds)
    ]
    own, host = (median(values) for values in zip(*pairs, strict=True))
    over = median(a - b for a, b in pairs)
    print(f"start-up, median of {rounds}: inside {own:.2f} s, outside {host:.2f} s, difference {over:+.2f} s")


def steps(image: str, python: str, results: Path, rounds: int) -> None:
    """Median step time of a short process, inside and outside in turns."""
    calls = {
        "in": lambda: json.loads(inside(image, ["python", "-c", STEP], results)[-1]),
        "out": lambda: json.loads(outside(python, ["-c", STEP])[-1]),
    }
    ratios, versions = [], set()
    for turn in range(rounds):
        told = {where: calls[where]() for where in (("in", "out") if turn % 2 else ("out", "in"))}
        versions |= {version for version, _ in told.values()}
        ratios.append(told["in"][1] / told["out"][1])
    mean, error = geometric_mean(ratios), stats.sem(np.log(ratios))
    reach = float(np.exp(stats.t.ppf(0.975, rounds - 1) * error))
    print(
        f"step time, inside against outside, {rounds} pairs, Python {' and '.join(sorted(versions))}: "
        f"{mean:.3f} (95%: {mean / reach:.3f} to {mean * reach:.3f})"
    )


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image", help="id or tag of the cpu image")
    parser.add_argument("--python", default=sys.executable, help="the host's interpreter")
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    found = engine("docker").image(options.image)
    if found is None:
        raise SystemExit(f"docker has no image {options.image!r}")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        start_up(found.id, options.python, results, 5)
        steps(found.id, options.python, results, options.pairs)


if __name__ == "__main__":
    main()
