"""Processes that are forked from a fork server: they end as others do, and touch neither the fork
server nor each other."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from study.artifacts.layout import Results
from study.base.files import package_sha256
from study.base.fork_server import FORK_SERVERS, Answer, Request, answer_of, ask
from study.host.fork_servers import can_fork, listen, start_fork_servers
from tests.conftest import ROOT
from tests.waiting import has_ended, wait_for

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has sockets with names and pidfd"
)


class ForkServer:
    """A fork server at work in a process of its own."""

    def __init__(
        self, modules: Sequence[str] = ("decimal",), folder: Path = ROOT, path: Path | None = None
    ) -> None:
        """Import modules of ``folder``. Listen at ``path``, which anyone may open, in place of
        where fork servers do."""
        with socket.socket(socket.AF_UNIX) as listening:
            if path:
                listening.bind(str(path))
                path.chmod(0o777)
                listening.listen(8)
            self.address = str(path) if path else listen(listening)
            words = [
                sys.executable,
                "-m",
                "study.base.fork_server",
                str(listening.fileno()),
                *modules,
            ]
            environment = dict(os.environ) | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
            self.process = subprocess.Popen(words, pass_fds=[listening.fileno()], env=environment)

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()

    def begin(self, code: str, output: Path, **wanted: object) -> socket.socket:
        """Have a process forked that executes ``code``, and return the connection."""
        request = Request("builtins:exec", [code], dict(os.environ), str(output.parent), **wanted)  # type: ignore[arg-type]
        with output.open("w") as file:
            return ask(self.address, request, [file.fileno(), file.fileno()])

    def run(self, code: str, output: Path) -> Answer:
        """Have ``code`` executed, and wait for its end."""
        with self.begin(code, output) as connection:
            return answer_of(connection)


SLEEPS = "import os, time; print(os.getpid(), os.getppid(), flush=True); time.sleep(1000)"


def numbers(output: Path) -> list[int]:
    """The number of a process that sleeps, and that of its supervisor, once it has said them."""
    wait_for(lambda: output.read_text().endswith("\n"))
    return [int(number) for number in output.read_text().split()]


@pytest.fixture
def fork_server() -> Iterator[ForkServer]:
    made = ForkServer()
    yield made
    made.end()


@pytest.mark.parametrize(
    ("code", "ends", "says"),
    [
        ("print('done')", 0, "done"),
        ("import sys; sys.exit(3)", 3, ""),
        ("raise SystemExit('enough')", 1, "enough"),
        ("raise ValueError('no')", 1, "ValueError: no"),
        ("import os; os._exit(7)", 7, ""),
        ("import os; os.kill(os.getpid(), 11)", -signal.SIGSEGV, ""),
    ],
)
def test_a_forked_process_ends_as_any_other(
    code: str, ends: int, says: str, fork_server: ForkServer, tmp_path: Path
) -> None:
    assert fork_server.run(code, tmp_path / "out").code == ends
    assert says in (tmp_path / "out").read_text()


def test_nothing_that_a_process_changes_is_seen_by_the_next(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    changes = (
        "import os, sys, decimal, threading, signal, resource, time\n"
        "decimal.getcontext().prec = 2; sys.path.clear(); os.environ['LEFT'] = '1'; "
        "os.chdir('/');\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); os.nice(5)\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start(); memory = bytearray(10**8)\n"
    )
    sees = (
        "import os, sys, decimal, threading, signal, resource\n"
        "print(decimal.getcontext().prec, len(sys.path), os.environ.get('LEFT'), os.getcwd(),"
        "signal.getsignal(signal.SIGTERM), resource.getrlimit(resource.RLIMIT_NOFILE), "
        "os.sched_getaffinity(0),"
        "os.nice(0), threading.active_count(), len(os.listdir('/proc/self/task')), "
        "len(os.listdir('/proc/self/fd')))"
    )
    for code, name in ((sees, "before"), (changes, "out"), (sees, "after")):
        assert fork_server.run(code, tmp_path / name).code == 0
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()


def test_all_that_a_process_leaves_behind_is_ended_with_it(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    code = (
        "import subprocess\n"
        "print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid)\n"
        "print(subprocess.Popen(['sh', '-c', 'sleep 1001 & exec sleep 1002'], "
        "start_new_session=True).pid)"
    )
    assert fork_server.run(code, tmp_path / "out").code == 0
    assert not any(psutil.pid_exists(int(pid)) for pid in (tmp_path / "out").read_text().split())
    assert not [
        one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "1001"]
    ]


def test_its_cpu_time_counts_with_that_of_its_children(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    spin = "import time\\nwhile time.process_time() < 0.3: pass"
    code = (
        "import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', "
        f"'{spin}'])\nexec('{spin}')"
    )
    used = fork_server.run(code, tmp_path / "out").cpu_seconds
    assert used is not None
    assert used >= 0.6


def test_a_signal_of_the_client_reaches_the_process(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); print('ready', flush=True); "
        "time.sleep(1000)"
    )
    with fork_server.begin(code, tmp_path / "out") as connection:
        wait_for(lambda: "ready" in (tmp_path / "out").read_text())
        connection.send(bytes([signal.SIGTERM]))
        assert answer_of(connection).code == 9
    with fork_server.begin("import time; time.sleep(1000)", tmp_path / "out") as connection:
        connection.send(bytes([signal.SIGKILL]))
        assert answer_of(connection).code == -signal.SIGKILL


def test_a_process_ends_with_its_supervisor(fork_server: ForkServer, tmp_path: Path) -> None:
    with fork_server.begin(SLEEPS, tmp_path / "out") as connection:
        process, supervisor = numbers(tmp_path / "out")
        os.kill(supervisor, signal.SIGKILL)
        assert answer_of(connection) == Answer(-signal.SIGKILL, None)
        wait_for(lambda: has_ended(process))


def test_a_process_outlives_its_fork_server_but_not_its_client(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    with fork_server.begin(SLEEPS, tmp_path / "out"):
        process, _ = numbers(tmp_path / "out")
        fork_server.end()
        assert not has_ended(process)
    wait_for(lambda: has_ended(process))


ATTACK = """
import json, os, socket, sys
code, user, *addresses = sys.argv[1:]
if user:
    os.setuid(int(user))
for address in addresses:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(address.replace('@', chr(0)))
        request = dict(function='builtins:exec', arguments=[code], environment={}, folder='/')
        socket.send_fds(s, [json.dumps(request).encode() + b'\\n'], [1, 2])
        print('answered' if s.recv(100) else 'hung up')
    except OSError as error:
        print(error.strerror)
"""
CONTAINED = ["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--mount-proc"]
"""What an engine gives a container that has the host's network."""
needs_root = pytest.mark.skipif(
    os.getuid() != 0, reason="only root makes namespaces everywhere, and is another user"
)


def attacked(
    addresses: Sequence[str],
    made: Path,
    user: str = "",
    within: Sequence[str] = (),
    python: str = sys.executable,
) -> list[str]:
    """What whoever asks the fork servers at these addresses to make a file is told."""
    words = [*within, python, "-c", ATTACK, f"open({str(made)!r}, 'w')", user, *addresses]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def names() -> set[str]:
    """The names of all sockets of the network's namespace; those that are no path begin with @."""
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    return {line.split(maxsplit=7)[7] for line in lines if len(line.split()) > 7}


@needs_root
def test_a_container_with_the_hosts_network_has_nothing_forked(tmp_path: Path) -> None:
    """It is the caller there, and sees each socket's name that the network's namespace has."""
    made, before = tmp_path / "made", names()
    fork_server = ForkServer()
    try:
        seen = sorted(names() - before)
        assert not [name for name in seen if name.startswith("@") and "study" in name]
        told = attacked([fork_server.address, *seen], made, within=CONTAINED)
        assert "answered" not in told
        assert told[0] == "No such file or directory"
        assert not made.exists()
        assert attacked([fork_server.address], made) == ["answered"]
        assert made.exists()
    finally:
        fork_server.end()


@needs_root
def test_another_user_has_nothing_imported_and_nothing_forked(tmp_path: Path) -> None:
    """The kernel keeps him from the address of a fork server, and the fork server from one that
    anyone may open."""
    imported, made = tmp_path / "imported", tmp_path / "made"
    (tmp_path / "heavy.py").write_text(f"open({str(imported)!r}, 'w')")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        fork_servers = [
            ForkServer(["heavy"], tmp_path),
            ForkServer(["heavy"], tmp_path, Path(folder, "socket")),
        ]
        try:
            told = attacked([one.address for one in fork_servers], made, user="65534")
            assert told[0] == "Permission denied"
            assert told[1] in ("hung up", "Connection reset by peer", "Broken pipe")
            # it has served the first
            assert attacked([fork_servers[1].address], made, user="65534")[0] != "answered"
            assert not imported.exists()
            assert not made.exists()
            for one in fork_servers:
                assert one.run("pass", tmp_path / "out").code == 0
            assert imported.exists()
        finally:
            for one in fork_servers:
                one.end()


def test_a_step_whose_start_is_gone_does_nothing() -> None:
    """Snakemake was killed before the step could ask the kernel to end with it: nobody would see it
    work."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    environment = dict(os.environ) | {FORK_SERVERS: f"{gone.pid} code"}
    words = [sys.executable, "-m", "study", "dataset", "no-plan.json", "digits"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "")


def refused(number: int) -> int:
    raise OSError(38, "Function not implemented")


def test_a_kernel_without_what_a_fork_server_needs_gets_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(FORK_SERVERS, raising=False)
    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    start_fork_servers([], [], Results(tmp_path))
    assert FORK_SERVERS not in os.environ


@pytest.mark.skipif(not can_fork(), reason="this system has no fork servers")
def test_a_start_takes_only_fork_servers_that_serve_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.host.fork_servers.start_fork_server", lambda *_: None)
    gone = subprocess.Popen(["true"])
    gone.wait()
    code = package_sha256()
    for told, taken in {
        f"{os.getpid()} {code} cpu.torch=/there": True,
        f"{gone.pid} {code} cpu.torch=/there": False,
        f"{os.getpid()} {'0' * 64} cpu.torch=/there": False,
        f"{os.getpid()}": False,
        "": False,
    }.items():
        monkeypatch.setenv(FORK_SERVERS, told)
        start_fork_servers([], [], Results(tmp_path))
        assert (os.environ[FORK_SERVERS] == told) is taken
