"""A step of preparation in a container: what it is lent, and what is kept of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from study.artifacts.layout import Results
from study.base.errors import StudyError
from study.host.engine import lifetime
from study.host.engine.base import Engine
from study.host.engine.engine_choice import EngineChoice
from study.host.steps.in_image import dataset_task, in_a_container
from study.host.supervise import Ended
from tests.conftest import plan_at
from tests.unit.host.test_engines import BUILT, described


def test_a_download_that_fails_keeps_what_it_brought_and_the_next_one_is_lent_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "images").mkdir()
    image = described(BUILT, "docker", "x")
    (tmp_path / "images" / "cpu.json").write_text(image.model_dump_json(), encoding="utf-8")
    plan = plan_at(EngineChoice("docker", "asked for", {"cpu": BUILT}))
    run, brought = plan.runs[0], Results(tmp_path).downloads / "first.bin"
    lent: list[bool] = []

    def enter(
        engine: Engine, image: str, command: Sequence[str], scratch: Path, *_: Any, network: bool, **__: Any
    ) -> Any:
        assert network
        inside = scratch / "results" / brought.relative_to(tmp_path)
        lent.append(inside.exists())
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.write_bytes(b"brought")
        if len(lent) == 1:
            return Ended(1, ["something else", "error: the server answers no more"])
        manifest = Results(scratch / "results").manifest(run.dataset)
        manifest.parent.mkdir(parents=True)
        manifest.write_text("{}")
        return Ended(0, [])

    monkeypatch.setattr(lifetime, "enter", enter)
    task = dataset_task(run.dataset, downloads=True)
    with pytest.raises(StudyError, match=r"^the server answers no more$"):
        in_a_container(task, plan, run, tmp_path, tmp_path / "log")
    assert brought.read_bytes() == b"brought"
    in_a_container(task, plan, run, tmp_path, tmp_path / "log")
    assert lent == [False, True]
    assert Results(tmp_path).manifest(run.dataset).is_file()
