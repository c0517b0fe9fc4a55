import getpass
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.artifacts.machine import Machine
from study.artifacts.plan import Plan
from study.artifacts.prepared import Weights
from study.artifacts.record import Record, Software, without_paths
from study.artifacts.record_store import next_session
from study.artifacts.samples import Epoch, Measurement, Memory, Step
from study.artifacts.setting import shareable
from study.base.errors import StudyError
from study.base.files import write_new
from study.base.privacy import anonymous, node
from study.config.times import PHASES
from tests.conftest import tiny_plan

WEIGHTS = Weights(
    model="resnet18",
    requested="none",
    kind="random",
    file=None,
    sha256=None,
    body_sha256="ab",
    reason="asked for",
)

MACHINE = Machine(
    device_name="Planted CPU",
    cpu_name="Planted CPU",
    cpu_cores=1,
    cpu_threads=2,
    memory_bytes=2**33,
    system="Linux",
    python="3.11.2",
    libraries={"torch": "2.0", "torchvision": "0.15", "fastai": "2.8", "numpy": "2.0"},
)


def make_record(
    plan: Plan, number: int = 0, outcome: str = "ok", fit_seconds: float = 1.0, session: int = 1
) -> Record:
    """A record of the plan's run ``number``, as a launcher writes it."""
    run = plan.runs[number]
    phases = {f"{phase}_seconds": 0.01 for phase in PHASES}
    measured = Measurement(
        setup_seconds=0.1,
        model_seconds=0.2,
        fit_seconds=fit_seconds,
        epochs=[
            Epoch(
                stage="unfrozen", train_seconds=0.8, valid_seconds=0.1, images=16, steps=2,
                loader_start_seconds=0.01, loader_end_seconds=0.02, synchronise_seconds=0.0,
                train_loss=1.0, valid_loss=1.0, accuracy=0.5,
            )
        ],
        steps=[Step(epoch=1, images=8, warm_up=index == 0, **phases) for index in range(2)],
        memory=Memory(host_resident_bytes=10**8),
        parameters=10,
        body_sha256="ab",
        threads=2,
        workers=0,
    )  # fmt: skip
    good = outcome == "ok"
    return Record(
        outcome=outcome,  # type: ignore[arg-type]
        message=None if good else "planted",
        measurement=measured if good else None,
        machine=MACHINE if good else None,
        data=None,
        weights=WEIGHTS,
        study=plan.name,
        run=run.name,
        key=run.key,
        session=session,
        warmed_up=True,
        block=run.block,
        position=run.position,
        started=f"2026-01-01T00:{run.position:02d}:00+00:00",
        setting=shareable(plan.study, run.setting),
        settings=run.settings,
        seed=1,
        process_seconds=2.0,
        software=Software(
            study_version="0",
            git_commit=None,
            git_dirty=None,
            lock_sha256="00",
            engine="none",
            engine_reason="asked",
        ),
    )


def write_records(plan: Plan, folder: Path, outcomes: list[str] | None = None) -> None:
    """A record for every run of the plan."""
    for number, run in enumerate(plan.runs):
        outcome = outcomes[number] if outcomes else "ok"
        write_new(folder / run.file, make_record(plan, number, outcome).model_dump_json(indent=1))


def test_a_record_is_never_overwritten(tmp_path: Path) -> None:
    write_new(tmp_path / "records" / "a.json", "first")
    with pytest.raises(StudyError, match=r"a\.json: this record exists already and is kept"):
        write_new(tmp_path / "records" / "a.json", "second")
    assert (tmp_path / "records" / "a.json").read_text() == "first"
    assert [path.name for path in (tmp_path / "records").iterdir()] == ["a.json"]


def test_a_record_is_written_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*paths: str) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    write_new(tmp_path / "a.json", "first")
    with pytest.raises(StudyError, match="is kept"):
        write_new(tmp_path / "a.json", "second")
    assert (tmp_path / "a.json").read_text() == "first"
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o644


def test_messages_hold_no_host_user_or_absolute_path() -> None:
    text = (
        f"FileNotFoundError: {Path.cwd()}/data/x.jpg and {Path.home()}/.cache/y.pt and "
        "/srv/secret-lab/photos/z.png "
        f'on {socket.gethostname()} for {getpass.getuser()}; "/opt/a b/c.py" C:\\Users\\me\\d.txt'
    )
    cleaned = anonymous(text)
    for name in ("x.jpg", "y.pt", "z.png", "c.py", "d.txt"):
        assert name in cleaned
    for secret in (str(Path.cwd()), str(Path.home()), "secret-lab", "/srv", "Users"):
        assert secret not in cleaned
    assert socket.gethostname() not in cleaned
    assert f"for {getpass.getuser()}" not in cleaned
    address = "see https://a.example/b/c.html (here)"
    assert anonymous(address) == address
    assert anonymous("open:/srv/lab/x.txt file:///srv/lab/y.txt") == "open:x.txt file://y.txt"
    assert anonymous("no /mnt/jane doe/photos/a.jpg", "/mnt/jane doe/photos") == "no photos/a.jpg"
    assert anonymous("ratio 3/4 of 5 and/or 6") == "ratio 3/4 of 5 and/or 6"


@pytest.mark.parametrize("by_name", [True, False], ids=["by its path", "as the current one"])
def test_a_folder_of_data_has_its_base_name_alone(
    photos: Path, monkeypatch: pytest.MonkeyPatch, by_name: bool
) -> None:
    monkeypatch.chdir(photos)
    plan = tiny_plan(
        dataset={"source": "folder", "path": str(photos) if by_name else ".", "image_size": 32}
    )
    cut = without_paths(plan.runs[0].settings)
    assert cut.dataset.path == photos.name
    assert str(photos.parent) not in cut.model_dump_json()


def test_the_session_counts_the_starts_that_measured_whatever_a_damaged_record_says(
    tmp_path: Path,
) -> None:
    assert next_session(tmp_path) == 1
    write_new(tmp_path / "a.json", make_record(tiny_plan(), session=3).model_dump_json(indent=1))
    (tmp_path / "broken.json").write_text("{")
    assert next_session(tmp_path) == 4
    for number in (1, 2, 10**12):
        (tmp_path / f"{number}.json").write_text(
            f'{{\n "session": {number},\n "x": {{"session": 7}}\n}}'
        )
    assert next_session(tmp_path) == 4


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    node.cache_clear()
    yield
    # or later tests on this worker would be on another machine than the modules they import
    node.cache_clear()


def test_a_machine_has_one_pseudonym_that_does_not_tell_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
