import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision.datasets
import torchvision.models
from safetensors.torch import save_file

from study.base.errors import StudyError
from study.base.strict_yaml import read_mapping
from study.config.sections import AUXILIARY, Training
from study.data.sources import DatasetInfo
from study.data.torchvision_sets import MNIST_MD5, MNIST_SERVER, Cifar10
from study.host.steps.prepare import IMAGENET, IMAGENET_SERVER
from study.training.loops.torch.optimizer import layer_groups, make_optimizer, set_frozen
from study.training.models import build as models
from study.training.models import pretrained
from study.training.trial import decide_and_try
from tests.conftest import tiny_plan

PREFIXES = ["module.", "model.", "_orig_mod.", "module._orig_mod.", "net.0."]


def test_an_unknown_model_is_named_with_its_neighbours() -> None:
    with pytest.raises(
        StudyError, match=r"model\.name: 'resnt18' is not allowed: no such model; near: .*resnet18"
    ):
        models.backbone("resnt18", 0)


@pytest.mark.parametrize(
    ("name", "size"),
    [("inception_v3", 75), ("googlenet", 32), ("squeezenet1_0", 32), ("squeezenet1_1", 32)],
)
def test_models_with_odd_heads_start_from_torchvisions_files(
    tmp_path: Path, name: str, size: int
) -> None:
    """The files hold auxiliary outputs, and a head of another size that is a convolution in two of
    them."""
    torch.manual_seed(1)
    more = {"init_weights": False} if name in AUXILIARY else {}
    whole = torchvision.models.get_model(name, num_classes=1000, **more)
    torch.save(whole.state_dict(), tmp_path / "weights.pth")
    decided = pretrained.decide(
        name, str(tmp_path / "weights.pth"), 1, tmp_path, classes=3, image_size=size
    )
    state = pretrained.read_state(tmp_path / "weights.pth")
    model = models.build(name, classes=3, seed=1, state=state)
    body = models.body_state(model, name)
    assert (decided.kind, decided.body_sha256) == ("file", models.body_sha256(body))
    assert all(torch.equal(value, state[key]) for key, value in body.items())
    assert {key.partition(".")[0] for key in set(state) - set(model.state_dict())} <= {
        "AuxLogits",
        "aux1",
        "aux2",
    }
    assert all(key.startswith(models.head_name(model)) for key in layer_groups(model)[-1])
    assert model.train()(torch.randn(2, 3, size, size)).shape == (2, 3)


@pytest.mark.parametrize(("name", "size"), [("vit_b_32", 64), ("alexnet", 32)])
def test_a_model_of_torchvision_that_does_not_take_the_images_says_so_before_any_run(
    name: str, size: int
) -> None:
    words = (
        rf"model\.name: '{name}' fails on images of 3 x {size} x {size}: .*; allowed: .* "
        r"dataset\.image_size"
    )
    with pytest.raises(StudyError, match=words) as caught:
        pretrained.decide(name, "none", 1, Path("hub"), channels=1, image_size=size)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["mobilenet_v3_small", "vit_b_32", "densenet121", "swin_t", "squeezenet1_1"]
)
def test_any_family_gets_a_head_for_the_classes_at_hand_and_each_parameter_is_trained_once(
    name: str,
) -> None:
    model = models.with_new_head(models.backbone(name, 0), 7, 1).eval()
    assert model(torch.zeros(1, 3, 224, 224)).shape == (1, 7)
    groups = layer_groups(model)
    assert sorted(n for group in groups for n in group) == sorted(
        n for n, _ in model.named_parameters()
    )
    optimizer = make_optimizer(model, groups, Training.model_validate({}))
    trained = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(trained) == sorted(id(p) for p in model.parameters())
    set_frozen(model, groups, True)
    assert 0 < sum(p.requires_grad for p in model.parameters()) < len(trained)


@pytest.mark.parametrize("suffix", ["pt", "safetensors", "nested.pth", "old.pth"])
def test_a_weights_file_is_followed_whatever_its_head_and_its_counts(
    tmp_path: Path, suffix: str
) -> None:
    state = models.with_new_head(models.backbone("resnet18", 9), 11, 9).state_dict()
    if suffix == "old.pth":
        state = without_counts(state)
    path = tmp_path / f"my weights.{suffix}"
    if suffix == "safetensors":
        save_file(state, path)
    else:
        torch.save({"state_dict": state} if "nested" in suffix else state, path)
    decision = pretrained.decide("resnet18", str(path), 1, tmp_path)
    assert (decision.kind, decision.file) == ("file", path.name)
    assert decision.body_sha256 == pretrained.decide("resnet18", "none", 9, tmp_path).body_sha256


def test_a_file_that_is_no_weights_file_or_for_another_model_is_one_clear_error(
    tmp_path: Path,
) -> None:
    (tmp_path / "text.pt").write_text("no weights")
    torch.save([1, 2], tmp_path / "list.pt")
    torch.save(torchvision.models.resnet34().state_dict(), tmp_path / "resnet34.pt")
    torch.save(torchvision.models.resnet50().state_dict(), tmp_path / "resnet50.pt")
    right = torchvision.models.resnet18().state_dict()
    for prefix in PREFIXES:
        other = {"loss.weight": torch.ones(2)}
        torch.save(
            other | {f"{prefix}{key}": right[key] for key in right}, tmp_path / f"{prefix}pt"
        )
    for name, words in (
        ("text.pt", r"'text\.pt' is not a weights file"),
        ("list.pt", r"'list\.pt' is not a state dict"),
        ("resnet34.pt", "not for resnet18: layer1.2.bn1.bias is not part of the model"),
        ("resnet50.pt", "not for resnet18: "),
        *((f"{prefix}pt", f"its keys have the prefix '{prefix}'; allowed") for prefix in PREFIXES),
    ):
        with pytest.raises(StudyError, match=words) as caught:
            pretrained.decide("resnet18", str(tmp_path / name), 1, tmp_path)
        assert "\n" not in str(caught.value)
        assert "model.weights" in str(caught.value)


def without_counts(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A state as old files hold it, torchvision's own among them."""
    return {name: value for name, value in state.items() if "num_batches" not in name}


def named(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    """Let torchvision's ResNet-18 weights be in ``file``."""
    weights = torchvision.models.ResNet18_Weights.DEFAULT.value
    monkeypatch.setattr(weights, "url", f"http://127.0.0.1:9/{file}")


def test_imagenet_weights_are_those_that_the_host_brought_or_random_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(monkeypatch, "resnet18-0a1b2c3d.pth")
    none = pretrained.decide("resnet18", "none", 1, tmp_path)
    for why in ("no route to it", None):
        decision = pretrained.decide("resnet18", "imagenet", 1, tmp_path, why)
        assert (decision.kind, decision.body_sha256) == ("random", none.body_sha256)
        assert decision.reason.startswith("ImageNet weights are not available: ")
        assert (why or "asks for resnet18-0a1b2c3d.pth, which is not there") in decision.reason
    (tmp_path / "checkpoints").mkdir()
    state = without_counts(models.backbone("resnet18", 3).state_dict())
    torch.save(state, tmp_path / "checkpoints" / "resnet18-0a1b2c3d.pth")
    decision = pretrained.decide("resnet18", "imagenet", 1, tmp_path)
    assert (decision.kind, decision.file) == ("imagenet", "resnet18-0a1b2c3d.pth")
    assert decision.body_sha256 == pretrained.decide("resnet18", "none", 3, tmp_path).body_sha256


def test_the_host_asks_for_the_files_that_torchvision_names() -> None:
    every = torchvision.models.list_models(module=torchvision.models)
    theirs = {name: torchvision.models.get_model_weights(name).DEFAULT.url for name in every}
    ours = read_mapping(IMAGENET)
    assert {name: IMAGENET_SERVER + file for name, file in ours.items()} == theirs
    (cifar,) = Cifar10.downloads
    published = torchvision.datasets.CIFAR10
    assert (cifar.address, cifar.checksum) == (published.url, published.tgz_md5)
    assert list(MNIST_MD5.items()) == torchvision.datasets.MNIST.resources
    assert MNIST_SERVER in torchvision.datasets.MNIST.mirrors


def test_a_weights_file_can_run_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "ran"),)

    named(monkeypatch, "resnet18-00000000.pth")
    file = tmp_path / "hub" / "checkpoints" / "resnet18-00000000.pth"
    file.parent.mkdir(parents=True)
    torch.save({"conv1.weight": Hostile()}, file)
    with pytest.raises(StudyError, match="is not a weights file"):
        pretrained.decide("resnet18", str(file), 1, tmp_path)
    with pytest.raises(StudyError, match="holds more than tensors"):
        pretrained.imagenet_model("resnet18", tmp_path / "hub")
    assert not (tmp_path / "ran").exists()


def test_every_size_of_images_shares_a_decision_that_was_tried_on_the_smallest(
    tmp_path: Path,
) -> None:
    model, factors = {"name": "alexnet", "weights": "none"}, {"dataset.image_size": [64, 32]}
    runs = tiny_plan(model=model, factors=factors, curve=None).runs
    assert len({run.weights for run in runs}) == 1
    with pytest.raises(StudyError, match=r"model\.name: 'alexnet' fails on images of 3 x 32 x 32"):
        decide_and_try([(run.settings, DatasetInfo(2, 16, 4)) for run in runs], tmp_path)
