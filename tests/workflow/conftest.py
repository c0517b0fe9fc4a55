"""A copy of the checkout in a folder whose name is not easy, and Snakemake in it."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import psutil
import pytest
import yaml

from study.artifacts.record import Record
from study.base.fork_server import FORK_SERVERS, Request, addresses, answer_of, ask
from study.host.fork_servers import can_fork
from tests.conftest import ROOT, study_values

FOLDERS = (
    *("config", "docker", "extras", "profiles", "replications"),
    *("snakemake_logger_plugin_study", "study", "workflow"),
)
FILES = ("requirements.lock", "requirements-uv.lock")
NO_PROXY = dict.fromkeys(("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"), "")
"""What this machine serves itself is asked of it, whatever the environment says."""
NO_NETWORK = dict.fromkeys(("https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9") | {
    "no_proxy": "",
    "NO_PROXY": "",
}
"""A proxy that nobody serves: every download is refused at once, whether the machine has a network
or not."""


START = ["-m", "study", "start", "--"]
"""A start whose words on the terminal are ours, as by `make study`."""
RECORDS = ["--until", "measure"]
"""Snakemake stops at the records: where no test looks at the tables and the report, none are
made."""
ALONE = ("warm_up_run=false", "quiet_wait_seconds=0")
"""No run but those that a test counts, and no wait for the tests beside it."""
OWN_MODEL = {"name": "nets:Net", "weights": "none"}
NETS = """\
import os, signal, sys, time
from pathlib import Path
import psutil, study, torch

class Net(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.head = torch.nn.Linear(3 * 32 * 32, classes)
        self.steps = 0

    def forward(self, images):
        if self.training and "study.training.trial" not in sys.modules:  # in a run, and not where it is tried
            self.steps += 1
            PLANTED
        return self.head(images.flatten(1))
"""


def _temporary() -> "TemporaryDirectory[str]":
    return TemporaryDirectory(prefix="study-", ignore_cleanup_errors=True)


@contextmanager
def neighbours(program: str, count: int) -> Iterator[None]:
    """That many processes beside the test, each with an argument of its own from which it may
    draw."""
    others = [
        subprocess.Popen([sys.executable, "-c", program, str(number)]) for number in range(count)
    ]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


SERVING = """
import os, sys, time
from pathlib import Path
from study.artifacts.layout import Results
from study.base.fork_server import FORK_SERVERS
from study.host.fork_servers import start_fork_server, start_fork_servers
from tests.conftest import tiny_plan

plan, results = tiny_plan(), Results(Path(sys.argv[1]))
start_fork_servers([plan], [(plan.name, run.name) for run in plan.runs], results)
if FORK_SERVERS in os.environ:
    start_fork_server("snakemake", ["tests.workflow.forked"], os.environ, results, None, sys.executable)
print(os.environ.get(FORK_SERVERS, ""), flush=True)
time.sleep(86400)
"""


@cache
def fork_servers() -> str:
    """Start fork servers that serve every start which a test of this worker waits for, and return
    what tells of them.

    Importing torch takes a third of the CPU time of a small start, and importing Snakemake half of
    one that does nothing else: another fork server forks Snakemake itself. What a test starts in
    the background, to kill it, has fork servers of its own, and so has a checkout whose code a test
    has edited.
    """
    folder = _temporary()
    environment = {key: value for key, value in os.environ.items() if key != FORK_SERVERS} | {
        "TMPDIR": folder.name
    }
    process = subprocess.Popen(
        [sys.executable, "-c", SERVING, folder.name],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(folder.cleanup)
    atexit.register(process.kill)
    assert process.stdout is not None
    return process.stdout.readline().strip()


def forked(
    command: Sequence[str], folder: Path, environment: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run Snakemake in a process that is forked from the fork server. All that it leaves behind is
    ended with it."""
    request = Request(
        "tests.workflow.forked:start", command[1 + len(START) :], environment, str(folder)
    )
    with (
        TemporaryFile("w+", encoding="utf-8") as output,
        TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        with ask(
            addresses(fork_servers())["snakemake"], request, [output.fileno(), errors.fileno()]
        ) as connection:
            code = answer_of(connection).code
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, code, output.read(), errors.read())


@dataclass
class Checkout:
    """A copy of the project that a test may edit. ``variables`` are added to the environment of
    what it starts."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)
    temporary: "TemporaryDirectory[str]" = field(default_factory=_temporary)
    """Its own TMPDIR, and its machine's lock: no test waits for another one's runs. Its path is
    short, for workers' sockets lie there."""
    caller: dict[str, Any] = field(default_factory=dict)
    """User, group and further groups of what it starts, in the words of ``subprocess``; none for
    those of the tests."""
    interpreter: str = sys.executable
    forked: bool = True
    """Whether Snakemake is forked from one that is imported already, where a test waits for its
    end. What it leaves behind is then ended with it: where that is looked for, it is a process of
    its own."""

    def environment(self) -> dict[str, str]:
        """The environment without what a test runner adds, and without a GPU."""
        own = {
            "CUDA_VISIBLE_DEVICES": "",
            "TMPDIR": self.temporary.name,
            "STUDY_MACHINE": self.temporary.name,
        }
        # Every step of a pipeline is a process: without byte code each compiles the package anew.
        dropped = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
        return (
            {key: value for key, value in os.environ.items() if key not in dropped}
            | own
            | self.variables
        )

    def run(self, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run a command in the checkout to its end. A start takes this worker's fork servers, if
        they serve its code.

        They serve no other user.
        """
        environment = ({} if self.caller else {FORK_SERVERS: fork_servers()}) | self.environment()
        serves = can_fork() and not self.caller and "PYTHONPATH" not in environment
        if self.forked and serves and command[: 1 + len(START)] == [sys.executable, *START]:
            return forked(command, self.root, environment)
        return subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, **self.caller
        )

    def python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run ``python -m`` with these arguments."""
        return self.run([self.interpreter, "-m", *arguments])

    def study(self, name: str, **changes: Any) -> None:
        """Write a study file."""
        path = self.root / "config" / "studies" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(study_values(**changes)), encoding="utf-8")

    def command(self, *config: str, extra: Sequence[str] = ()) -> list[str]:
        """Snakemake as a user calls it."""
        options = [
            "--cores",
            "1",
            *extra,
            "--config",
            "studies=[tiny]",
            "container=none",
            *ALONE,
            *config,
        ]
        return [self.interpreter, *START, *options]

    def snakemake(
        self, *config: str, extra: Sequence[str] = ()
    ) -> "subprocess.CompletedProcess[str]":
        """Run Snakemake to its end."""
        return self.run(self.command(*config, extra=extra))

    def good(self, *config: str, extra: Sequence[str] = ()) -> str:
        """Run Snakemake, which must succeed; what it said."""
        done = self.snakemake(*config, extra=extra)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def started(
        self, *config: str, extra: Sequence[str] = ()
    ) -> "Iterator[subprocess.Popen[bytes]]":
        """Snakemake in the background, as the first of its process group, which is killed at the
        end of the context if it is still there. What it says goes to the file ``said``."""
        with (self.root / "said").open("w") as said:
            process = subprocess.Popen(
                self.command(*config, extra=extra),
                cwd=self.root,
                env=self.environment(),
                stdout=said,
                stderr=said,
                # A shell's background job ignores Ctrl-C, and so would all that it starts.
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def said(self) -> str:
        """What the last start in the background has said."""
        return (self.root / "said").read_text(encoding="utf-8")

    def plant(self, code: str) -> None:
        """Write the model of a user, ``nets:Net``, that executes ``code`` in each step of its
        training, before the forward pass of ``images``; ``self.steps`` counts from 1."""
        # A file whose name stands in the text of a model is a part of it: one that only holds a run
        # must not be.
        code = textwrap.dedent(code).strip().replace('"held"', '"he" + "ld"')
        text = NETS.replace("            PLANTED\n", textwrap.indent(code, " " * 12) + "\n")
        (self.root / "nets.py").write_text(text, encoding="utf-8")

    def records(self, study: str = "tiny") -> dict[str, bytes]:
        """Every record, by file name."""
        return {
            path.name: path.read_bytes()
            for path in (self.root / "results" / study / "records").glob("*.json")
        }

    def measured(self, study: str = "tiny") -> dict[str, Record]:
        """Every record, read, by file name."""
        return {
            name: Record.model_validate_json(content)
            for name, content in self.records(study).items()
        }

    def page(self) -> str:
        """The report, which is there."""
        return (self.root / "results" / "report.html").read_text(encoding="utf-8")

    def jobs(self) -> list[int]:
        """Training processes that work in the checkout."""
        found = psutil.process_iter(["name", "cwd"])
        return [
            one.pid for one in found if one.info == {"name": "study-job", "cwd": str(self.root)}
        ]


def copy_checkout(root: Path) -> Checkout:
    """Copy what a run of the pipeline needs."""
    for folder in FOLDERS:
        # With its byte code, which each start would compile anew; not with what another worker is
        # just writing.
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("*.pyc.*"))
    for file in FILES:
        shutil.copy2(ROOT / file, root)
    checkout = Checkout(root)
    checkout.study("tiny")
    return checkout


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test that starts pipelines a longer limit, and begin with the longest: none is to
    be the last, alone.

    Beside other work on the machine such a test takes minutes.
    """
    items.sort(key=lambda item: item.path.name != "test_soak.py")
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A fresh copy for one test."""
    return copy_checkout(tmp_path / 'a "copy" of 研究\'s')


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results that hold the data and the weights of the tiny study, and nothing measured."""
    made = copy_checkout(tmp_path_factory.mktemp("prepared"))
    made.good(extra=["--until", "dataset", "weights"])
    return made.root / "results"


def with_inputs(checkout: Checkout, prepared: Path) -> Checkout:
    """The checkout, with the data and the weights of ``prepared``."""
    for part in ("data", "tiny/weights"):
        shutil.copytree(prepared / part, checkout.root / "results" / part)
    return checkout


@pytest.fixture
def ready(checkout: Checkout, prepared: Path) -> Checkout:
    """A fresh copy in which the tiny study's data and weights are there already."""
    return with_inputs(checkout, prepared)


@pytest.fixture
def plain(tmp_path: Path, prepared: Path) -> Checkout:
    """A copy with data and weights in a folder whose name is easy: executors do not quote it."""
    return with_inputs(copy_checkout(tmp_path / "checkout"), prepared)
