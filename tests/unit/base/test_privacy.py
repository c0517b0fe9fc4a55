import re
import socket
from collections.abc import Iterator

import pytest

from study.base.privacy import node


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    node.cache_clear()
    yield
    node.cache_clear()  # or later tests on this worker would be on another machine than the modules they import


def test_a_machine_has_one_pseudonym_that_does_not_tell_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "login.example")
    first = node()
    if first is None:
        pytest.skip("this system has no machine-id")
    assert re.fullmatch("[0-9a-f]{8}", first)
    node.cache_clear()
    assert node() == first
    for other in ("login2.example", ""):
        node.cache_clear()
        monkeypatch.setattr(socket, "gethostname", lambda other=other: other)
        assert node() != first


def test_two_nodes_of_a_cluster_on_one_host_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for name in ("n1", "n2"):
        node.cache_clear()
        monkeypatch.setenv("SLURMD_NODENAME", name)
        found.add(node())
    assert len(found) == 2 or found == {None}
