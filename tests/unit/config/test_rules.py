"""The table of keys that go together: each rule is broken by one example, and says what is wrong in
one line."""

from typing import Any

import pytest

from study.base.errors import StudyError
from study.config.rules import RULES, Rule, broken
from study.config.settings import Keys, Settings, with_values

DIGITS = {"dataset.source": "digits", "dataset.classes": 10}
OWN = {"model.name": "nets:make", "model.weights": "none", "training.freeze_epochs": 0}
FASTAI = {"training.loop": "fastai"}
DDP = {"training.strategy": "ddp"}
FROZEN = {"training.freeze_epochs": 1}
TARGET = {"training.target_accuracy": 0.9}
IDLE = {"loader.workers": 0}
THREADS = {"loader.kind": "threads"}
SWITCHED = {
    "training.compile": True,
    "training.cuda_graph": True,
    "training.memory_format": "channels_last",
    "training.optimizer_implementation": "fused",
}

BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("dataset.path", {"dataset.source": "folder"}),
    ("dataset.classes", DIGITS | {"dataset.classes": 2}),
    ("dataset.images", DIGITS | {"dataset.images": 1798}),
    ("model.weights", OWN | {"model.weights": "imagenet"}),
    ("model.name", FASTAI | {"model.name": "googlenet"}),
    ("training.schedule", OWN | FASTAI | FROZEN | {"training.schedule": "constant"}),
    ("loader.kind", FASTAI | {"loader.kind": "device"}),
    ("training.compile", DDP | {"training.compile": True}),
    ("training.cuda_graph", DDP | {"training.cuda_graph": True}),
    ("training.cuda_graph", {"training.cuda_graph": True}),
    *((key, FASTAI | {key: value}) for key, value in SWITCHED.items()),
    ("training.deterministic", FASTAI | {"device": "cuda", "training.deterministic": True}),
    ("training.precision", {"training.precision": "tf32"}),
    ("training.precision", FASTAI | {"training.precision": "bf16"}),
    ("training.optimizer", FASTAI | {"training.optimizer": "sgd"}),
    ("training.gradient_accumulation", FASTAI | {"training.gradient_accumulation": 2}),
    ("training.validation", FASTAI | {"training.validation": "end"}),
    ("loader.prefetch_factor", FASTAI | {"loader.prefetch_factor": 4}),
    ("training.schedule", FASTAI | {"training.schedule": "constant"}),
    ("training.schedule", FASTAI | OWN | {"training.schedule": "cosine"}),
    ("training.reference_batch_size", {"training.learning_rate_rule": "linear"}),
    ("training.validation", TARGET | {"training.validation": "end"}),
    ("loader.prefetch_factor", IDLE | {"loader.prefetch_factor": 2}),
    ("loader.persistent_workers", IDLE | {"loader.persistent_workers": True}),
    ("loader.persistent_workers", THREADS | {"loader.persistent_workers": True}),
    ("loader.persistent_workers", FASTAI | {"loader.persistent_workers": True}),
    ("loader.workers", THREADS | {"loader.workers": 0}),
    ("loader.decoder", FASTAI | {"loader.decoder": "torchcodec"}),
]


def keys(changes: dict[str, Any]) -> Keys:
    """Keys that nobody has checked against each other: the defaults, with ``changes``."""
    return Keys.model_validate(with_values({}, changes))


@pytest.mark.parametrize(("key", "changes"), BROKEN)
def test_a_broken_rule_names_both_keys_their_values_and_what_is_allowed(
    key: str, changes: dict[str, Any]
) -> None:
    with pytest.raises(StudyError) as caught:
        Settings.of_values(with_values({}, changes), "study x")
    error, rule = caught.value, next(broken(keys(changes)))
    assert rule.key == error.key == key
    assert error.value == changes.get(key)
    assert (error.source, error.why, error.allowed) == ("study x", rule.why, rule.allowed.names)
    assert all(f"{other} " in error.context for other in rule.when)


def test_every_rule_has_an_example_that_breaks_it() -> None:
    found: list[Rule] = [rule for _, changes in BROKEN for rule in broken(keys(changes))]
    assert [rule for rule in RULES if rule not in found] == []
