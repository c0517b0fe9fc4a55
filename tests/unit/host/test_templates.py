"""Where a system cannot serve templates, every process starts from nothing."""

import os
import sys
from pathlib import Path

import pytest

from study.artifacts.layout import Results
from study.base.step import TEMPLATES
from study.host.plan.templates import can_fork, start_templates


def refused(number: int) -> int:
    raise OSError(38, "Function not implemented")


def test_a_kernel_without_what_a_template_needs_gets_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(TEMPLATES, raising=False)
    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    start_templates([], [], Results(tmp_path))
    assert TEMPLATES not in os.environ


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_than_linux_get_none(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert not can_fork()
