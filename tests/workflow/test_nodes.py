"""A run on two machines: here two network namespaces, which have all files in common and no network but one wire."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import Record
from study.artifacts.run import Node
from study.config.study import Study
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan
from study.host.steps import attempt
from study.host.steps.prepare import make_dataset
from study.training.models.pretrained import decide
from tests.conftest import HERE, SMALL_NET, study_values
from tests.unit.host.test_launch import measured

pytestmark = pytest.mark.thorough

ADDRESSES = {"study-a": "10.213.77.1", "study-b": "10.213.77.2"}
LOSSES = ("train_loss", "loss_sum", "valid_loss")


def make(plan: Plan, results: Path) -> None:
    """What the dataset and the weights step leave."""
    write_plans([plan], results)
    run = plan.runs[0]
    make_dataset(plan, run.dataset, results)
    decision = decide(run.settings.model.name, "none", run.settings.seed, results / "weights")
    path = results / plan.name / "weights" / f"{run.weights}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(decision.model_dump_json(), encoding="utf-8")


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


@pytest.fixture
def namespaces() -> Iterator[list[Node]]:
    """Two namespaces that see each other through one wire, and nothing else: the host cannot reach their addresses."""
    try:
        for name in ADDRESSES:
            ip(f"netns add {name}")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs root, and `ip netns` (iproute2)")
    try:
        ip("link add study-wa netns study-a type veth peer name study-wb netns study-b")
        for (name, address), wire in zip(ADDRESSES.items(), ("study-wa", "study-wb"), strict=True):
            ip(f"-n {name} address add {address}/24 dev {wire}")
            ip(f"-n {name} link set {wire} up")
            ip(f"-n {name} link set lo up")
        yield [Node(address=address, command=["ip", "netns", "exec", name]) for name, address in ADDRESSES.items()]
    finally:
        for name in ADDRESSES:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@pytest.mark.xdist_group("namespaces")
def test_a_run_on_two_machines_has_the_losses_of_one_process(
    namespaces: list[Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "nodes_of", lambda count: namespaces[:count])
    values = study_values(
        model=SMALL_NET,
        training={"freeze_epochs": 0, "epochs": 2, "batch_size": 8, "processes": "auto", "threads": 1},
        factors={"training.strategy": ["single", "ddp_two_nodes"]},
        curve=None,
        replicates=1,
    )
    plan = make_plan("tiny", Study.model_validate(values), EngineChoice("none", ""), HERE, {"cpu": 2, "cuda": 0})
    make(plan, tmp_path)
    made: dict[str, Record] = {}
    for run in plan.runs:
        record = measured(plan, run, tmp_path)
        assert record.outcome == "ok", record.message
        made[run.settings.training.strategy] = record
    one, two = (made[strategy].measurement for strategy in ("single", "ddp_two_nodes"))
    assert one
    assert two
    assert len(two.replicas) == 2
    for alone, together in zip(one.epochs, two.epochs, strict=True):
        for loss in LOSSES:
            assert getattr(together, loss) == pytest.approx(getattr(alone, loss), rel=1e-4), loss
