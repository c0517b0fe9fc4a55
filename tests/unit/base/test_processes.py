import subprocess
from pathlib import Path

import psutil
import pytest

from study.base import processes
from study.base.processes import oom_kills, oom_kills_of_the_group
from tests.waiting import has_ended, wait_for


def kernel(root: Path, files: dict[str, str]) -> Path:
    """Write what the kernel tells under ``root``: 9 kills on the machine, and ``files``."""
    for name, content in ({"proc/vmstat": "pgfault 1\noom_kill 9\n"} | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="ascii")
    return root


@pytest.mark.parametrize(
    ("groups", "counts"),
    [
        ("0::/user/run\n", {"user/run/memory.events": "oom 5\noom_kill 2\noom_group_kill 0\n"}),
        ("4:memory:/user/run\n0::/\n", {"memory/user/run/memory.oom_control": "under_oom 0\noom_kill 2\n"}),
        ("5:cpu,memory:/\n", {"memory/memory.oom_control": "oom_kill 2\n"}),
    ],
)
def test_a_kill_in_another_control_group_is_none_of_this_process(
    tmp_path: Path, groups: str, counts: dict[str, str]
) -> None:
    counted = {f"sys/fs/cgroup/{name}": content for name, content in counts.items()}
    root = kernel(tmp_path, {"proc/self/cgroup": groups} | counted)
    assert (oom_kills(root), oom_kills_of_the_group(root)) == (9, 2)


@pytest.mark.parametrize("groups", ["0::/\n", "4:memory:/user/run\n3:cpuset:/\n", ""])
def test_where_no_group_is_counted_the_whole_machine_is(tmp_path: Path, groups: str) -> None:
    root = kernel(tmp_path, {"proc/self/cgroup": groups})
    assert oom_kills_of_the_group(root) == 9


def test_a_kernel_that_does_not_count_has_killed_none(tmp_path: Path) -> None:
    assert oom_kills_of_the_group(tmp_path) == 0


def test_what_no_list_of_processes_has_ends_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of forks is always a process further than the list."""
    words = ["sh", "-c", "sleep 1000 & echo $!; wait"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as shell:
        assert shell.stdout
        unlisted = int(shell.stdout.readline())
        lists: list[set[psutil.Process]] = [{psutil.Process(shell.pid)}, set()]
        monkeypatch.setattr(processes, "below", lambda: lists.pop(0))
        processes.end_left(set())
        wait_for(lambda: has_ended(unlisted))
