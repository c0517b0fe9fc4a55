"""A user's own model: each kind of run is tried in small, the error names key, model and line, and
it says its body."""

import importlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from study.artifacts.prepared import Weights
from study.base.errors import StudyError
from study.config.settings import Settings
from study.data.sources import DatasetInfo
from study.training.common import loop_of
from study.training.models import build, own
from study.training.trial import decide_and_try
from tests.unit.training.test_loops import make_job, tiny_run

NAMES = count()
NET = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem, self.fc = nn.Linear(192, 8), nn.Linear(8, classes)
    def forward(self, x):
        y = self.stem(x.flatten(1)).relu()
        return self.fc(y)
def net(classes):
    model = Net(classes)
    return model
"""
SEQUENTIAL = (
    "import torch\nfrom torch import nn\ndef net(classes):\n    return "
    "nn.Sequential(nn.Flatten(), {})\n"
)
LINEAR = SEQUENTIAL.format("nn.Linear(192, classes)")

Try = Callable[..., Weights]


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Try]:
    """Try a model of this text, for images of 8 x 8 pixels in batches of 4, of which the last has
    one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def attempt(text: str, weights: str = "none", device: str = "cpu", **training: Any) -> Weights:
        name = f"own_net_{next(NAMES)}"
        Path(f"{name}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        values = {"freeze_epochs": 0, "batch_size": 4, "drop_last": False, "loop": "torch"}
        asked = {
            "dataset": {"source": "generated", "image_size": 8},
            "model": {"name": f"{name}:net", "weights": weights},
            "training": values | training,
            "loader": {"kind": "workers"},
        }
        settings = Settings.model_validate({"device": device} | asked)
        return decide_and_try([(settings, DatasetInfo(2, 21, 6))], tmp_path)

    yield attempt
    torch.set_grad_enabled(True)


@pytest.mark.parametrize(
    "changes",
    [{}, {"loop": "fastai", "precision": "fp16"}, {"precision": "tf32"},
     {"precision": "fp16", "gradient_accumulation": 3, "optimizer": "sgd"},
     {"strategy": "ddp", "processes": 4, "batch_size_is": "replica"},
     {"loop": "fastai", "strategy": "ddp", "processes": 2},
     {"compile": True, "memory_format": "channels_last"},
     {"cuda_graph": True, "optimizer_implementation": "fused", "validation": "end"},
     {"target_accuracy": 0.9, "learning_rate_rule": "linear", "reference_batch_size": 64}],
)  # fmt: skip
def test_a_good_model_passes_the_small_run_of_whatever_a_gpu_is_to_do(
    changes: dict[str, Any], tried: Try
) -> None:
    assert tried(NET, device="cuda", **changes).reason == "random weights were asked for"


def with_line(old: str, new: str) -> str:
    assert old in NET
    return NET.replace(old, new)


def before_forward(line: str) -> str:
    return with_line(STEM, f"        {line}\n{STEM}")


def before_return(line: str) -> str:
    """The factory's model after one more line."""
    return with_line("    return model", f"    {line}\n    return model")


RETURN, STEM = "        return self.fc(y)", "        y = self.stem(x.flatten(1)).relu()"
LAZY, FIVE = SEQUENTIAL.format("nn.LazyLinear(classes)"), SEQUENTIAL.format("nn.Linear(192, 5)")
NARROW = SEQUENTIAL.format("nn.Linear(190, classes)")
NORMED = SEQUENTIAL.format("nn.BatchNorm1d(192), nn.Linear(192, classes)")
IN_PLACE = with_line(RETURN, "        z = y.exp(); w = self.fc(z); z += 1; return w")
SWITCH = "torch.set_grad_enabled(False)"
BAD = {
    "a lazy layer": (LAZY, "has a parameter without a shape, 1.weight", 3),
    "gradients off on import": (f"import torch\n{SWITCH}\n{LINEAR}", "asked for grad_mode true", 5),
    "no factory": ("import torch\n", "cannot be loaded (AttributeError", None),
    "no module": ("def net(classes):\n    return 'a model'\n", "made a str", 1),
    "other classes": (FIVE, "returns (2, 5) for two images, but the data have 2", 3),
    "other images": (NARROW, "fails on images of 3 x 8 x 8: ", 3),
    "no gradient": (with_line(RETURN, f"{RETURN}.detach()"), "does not require grad", 10),
    "gradients off in forward": (before_forward(SWITCH), "grad", 11),
    "fails in training alone": (before_forward("assert not self.training, 'oh'"), "oh", 8),
    "fails in evaluation alone": (before_forward("assert self.training, 'oh'"), "oh", 8),
    "a batch of two in its code": (
        with_line("x.flatten(1)", "x.reshape(2, -1)"),
        "batch_size 4: RuntimeError",
        8,
    ),
    "statistics of one image": (NORMED, "more than 1", 3),
    "no axis of a single image": (with_line(RETURN, RETURN + ".squeeze()"), "size mismatch", 10),
    "changed in place": (IN_PLACE, "inplace", 10),
    "another type": (with_line("x.flatten(1)", "x.half().flatten(1)"), "same dtype", 8),
    "leaves in forward": (with_line(STEM, "        raise SystemExit(3)"), "SystemExit: 3", 8),
    "two outputs": (with_line(RETURN, RETURN + ", y"), "returns tuple for two images", 10),
    "nothing to train": (before_return("model.requires_grad_(False)"), "no parameter", 10),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_fails_in_each_run_fails_in_the_trial_with_key_model_and_line(
    kind: str, tried: Try
) -> None:
    text, words, line = BAD[kind]
    with pytest.raises(StudyError, match=r"^model\.name: 'own_net_\d+:net' ") as caught:
        tried(text)
    said = str(caught.value)
    assert words in said
    assert f".py, line {line})" in said or not line, said
    assert "\n" not in said


def test_a_file_that_no_key_would_hold_is_refused_by_its_name(tried: Try, tmp_path: Path) -> None:
    (tmp_path / "parts_beside").mkdir()
    (tmp_path / "parts_beside" / "__init__.py").touch()
    told = r"imports parts_beside/__init__\.py, which lies outside the folder of its module"
    with pytest.raises(StudyError, match=told):
        tried("import parts_beside\n" + NET)


def test_a_batch_that_no_run_has_is_not_tried(tried: Try) -> None:
    assert tried(BAD["statistics of one image"][0], drop_last=True).kind == "random"


@pytest.mark.parametrize("loop", ["torch", "fastai"])
@pytest.mark.parametrize(
    "said",
    [
        "model.body = 'stem'",
        "model.body = ['stem']",
        "model.layer_groups = [model.stem, model.fc]",
        "model.layer_groups = lambda: [['stem'], [model.fc.weight, 'fc.bias']]",
    ],
)
def test_a_model_that_says_its_body_trains_its_head_alone_first_in_both_loops(
    loop: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"own_net_{next(NAMES)}"
    (tmp_path / f"{name}.py").write_text(before_return(said))
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[list[bool]] = []
    real = nn.Linear.forward

    def watched(layer: nn.Linear, values: torch.Tensor) -> torch.Tensor:
        if layer.in_features == 192 and torch.is_grad_enabled():
            seen.append([layer.weight.requires_grad])
        return real(layer, values)

    monkeypatch.setattr(nn.Linear, "forward", watched)
    run = tiny_run(
        loop,
        dataset={"source": "generated", "images": 10, "image_size": 8},
        model={"name": f"{name}:net", "weights": "none"},
        training={"freeze_epochs": 1, "epochs": 1, "batch_size": 4},
    )
    measured = loop_of(run.settings)(make_job(tmp_path, run))
    assert [epoch.stage for epoch in measured.epochs] == ["frozen", "unfrozen"]
    assert seen == [[False], [False], [True], [True]]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("pass", "training.freeze_epochs: 1 is not allowed"),
        ("model.body = 'features'", "has a part of its body that is no module of it"),
        ("model.body = 3", "has a part of its body that is no module of it"),
        ("model.body = ['stem', 'fc']", "has no parameter beside its body"),
        ("model.layer_groups = [model.fc]", "has layer groups without stem.bias"),
        ("model.body = nn.Linear(2, 2)", "no weight from body.weight to body.bias has moved"),
    ],
)
def test_a_body_that_cannot_be_frozen_is_one_error_line_before_any_run(
    said: str, words: str, tried: Try
) -> None:
    with pytest.raises(StudyError) as caught:
        tried(before_return(said), freeze_epochs=1)
    assert words in str(caught.value)


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_what_a_model_froze_itself_stays_frozen_and_is_said(
    loop: str, tried: Try, tmp_path: Path
) -> None:
    text = before_return("model.stem.requires_grad_(False)")
    decided = tried(text, loop=loop)
    told = "random weights were asked for; 2 of 4 parameters stay frozen, as the model says"
    assert decided.reason == told
    model = own.made(decided.model, 2, 1)
    assert own.layer_groups(model, decided.model, 0) == [["fc.weight", "fc.bias"]]


def test_a_weights_file_of_other_classes_starts_the_body_alone(tried: Try, tmp_path: Path) -> None:
    text = before_return("model.body = 'stem'")
    first = tried(text)
    state = own.made(first.model, 7, 5).state_dict()
    torch.save(state, tmp_path / "seven.pt")
    decided = tried(text, str(tmp_path / "seven.pt"), freeze_epochs=1)
    assert decided.reason == "a weights file was given, which does not fit the head"
    model = build.build(decided.model, classes=2, seed=1, state=state)
    assert torch.equal(model.state_dict()["stem.weight"], state["stem.weight"])
    assert model.state_dict()["fc.weight"].shape == (2, 8)
    told = r"model\.weights: the file is not for .*: fc\.bias has shape \(7,\)"
    with pytest.raises(StudyError, match=told):
        tried(NET, str(tmp_path / "seven.pt"))
