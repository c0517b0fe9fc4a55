"""The table of keys that go together, and its check: with some values of other keys, a key may have
only some values.

``make schema`` prints the same table into ``config/README.md``.
"""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from pydantic import BaseModel

from study.base.errors import ValueRefused
from study.config.keys import Values, When, all_hold, one_of, values_of
from study.config.sections import AUXILIARY, DIGITS, NO_GPU, SCANS, is_own


class Rule(NamedTuple):
    """One row: ``key`` has one of the ``allowed`` values while every key of ``when`` has one of its
    own."""

    key: str
    allowed: Values
    when: When
    why: str = ""
    """The reason, as a clause that follows "because"; empty where the rule speaks for itself."""

    def is_broken(self, settings: BaseModel) -> bool:
        """Return whether ``settings`` have the values of ``when``, but none of the allowed ones."""
        return all_hold(self.when, settings) and not self.allowed.hold(
            attrgetter(self.key)(settings)
        )

    def error(self, settings: BaseModel) -> ValueRefused:
        """Return the error: key, value, the other keys with their values, the reason, what is
        allowed."""
        given, context = attrgetter(self.key)(settings), values_of(self.when, settings)
        return ValueRefused(
            key=self.key, value=given, context=context, why=self.why, allowed=self.allowed.names
        )


def check(settings: BaseModel) -> None:
    """Raise :class:`ValueRefused` for the first rule that ``settings`` break."""
    for rule in broken(settings):
        raise rule.error(settings)


def broken(settings: BaseModel) -> Iterator[Rule]:
    """Yield every rule that ``settings`` break, in the order of the table."""
    return (rule for rule in RULES if rule.is_broken(settings))


FOLDER = Values("the path of the folder", bool)
A_FILE = Values("none, or the path of a weights file", lambda weights: weights != "imagenet")
TORCHVISION = Values("a model of torchvision", lambda name: not is_own(name))
OTHERS = Values("a model that is not torchvision's", is_own)

PLAIN = Values(f"a model other than {' and '.join(AUXILIARY)}", lambda name: name not in AUXILIARY)

A_PART = Values(f"20 to {SCANS}", lambda images: 20 <= images <= SCANS)
FASTAI = {"training.loop": one_of("fastai")}
FASTAI_ON_GPU = FASTAI | {"device": one_of("cuda"), "model.name": TORCHVISION}
REPLICAS = {"training.strategy": one_of("ddp", "ddp_two_nodes")}
TARGET = {"training.target_accuracy": Values("an accuracy", bool)}
FROZEN = {"training.freeze_epochs": Values("1 and more", bool)}
A_RULE = {"training.learning_rate_rule": one_of("linear", "square_root")}
REFERENCE = Values("the images of a step for which training.learning_rate is meant", bool)
NO_WORKER = {"loader.workers": one_of(0), "loader.kind": one_of("workers")}
THREADS = {"loader.kind": one_of("threads")}


def _only(values: Mapping[str, Any], when: When, why: str) -> list[Rule]:
    """Return a rule for each key of ``values``: it has no other value there."""
    return [Rule(key, one_of(value), when, why) for key, value in values.items()]


RULES: tuple[Rule, ...] = (
    Rule("dataset.path", FOLDER, {"dataset.source": one_of("folder")}),
    Rule("dataset.classes", one_of(10), DIGITS, "there are ten digits"),
    Rule(
        "dataset.images",
        A_PART,
        DIGITS,
        "scikit-learn has no more, and each digit has to be in both parts",
    ),
    Rule(
        "model.weights",
        A_FILE,
        {"model.name": OTHERS},
        "only models of torchvision have ImageNet weights",
    ),
    Rule("model.name", PLAIN, FASTAI, "fastai would cut its body through the auxiliary outputs"),
    Rule("loader.kind", one_of("workers"), FASTAI, "fastai brings its own loader"),
    *_only(
        {"training.compile": False, "training.cuda_graph": False},
        REPLICAS,
        "only one process by itself compiles or records",
    ),
    *_only(
        {
            # how the plain loop may do the same training faster
            "training.compile": False,
            "training.cuda_graph": False,
            "training.memory_format": "contiguous",
            "training.optimizer_implementation": "auto",
            "training.optimizer": "adamw",
            "training.gradient_accumulation": 1,
            "training.validation": "epoch",
            "loader.prefetch_factor": None,
        },
        FASTAI,
        "fastai is used as it is",
    ),
    Rule(
        "loader.persistent_workers",
        one_of(False),
        FASTAI,
        "fastai's loader starts its workers anew in each epoch",
    ),
    Rule(
        "training.deterministic",
        one_of(False),
        FASTAI_ON_GPU,
        "its head's pooling has no such backward pass there",
    ),
    Rule("training.cuda_graph", one_of(False), NO_GPU, "only a GPU has CUDA graphs"),
    Rule("training.precision", one_of("auto", "fp32", "bf16", "fp16"), NO_GPU, "a CPU has no TF32"),
    Rule(
        "training.precision",
        one_of("auto", "fp32"),
        FASTAI | NO_GPU,
        "fastai always trains in fp32 there",
    ),
    Rule(
        "training.schedule",
        one_of("one_cycle"),
        FASTAI | {"model.name": TORCHVISION},
        "fastai is used as it is",
    ),
    Rule(
        "training.schedule",
        one_of("one_cycle", "constant"),
        FASTAI | {"model.name": OTHERS},
        "fastai is used as it is",
    ),
    Rule(
        "training.schedule",
        one_of("one_cycle"),
        FASTAI | FROZEN,
        "fastai's `fine_tune` has a schedule of its own",
    ),
    Rule("training.reference_batch_size", REFERENCE, A_RULE),
    Rule(
        "training.validation",
        one_of("epoch"),
        TARGET,
        "the accuracy of every epoch is compared with it",
    ),
    Rule("loader.prefetch_factor", one_of(None), NO_WORKER, "no worker starts"),
    Rule("loader.persistent_workers", one_of(False), NO_WORKER, "no worker starts"),
    Rule("loader.persistent_workers", one_of(False), THREADS, "threads always stay"),
    Rule(
        "loader.workers",
        Values("auto, or 1 and more", bool),
        THREADS,
        "without a thread nothing is decoded",
    ),
    Rule("loader.decoder", one_of("pillow"), FASTAI, "fastai brings its own loader"),
)
"""The rules in the order in which they are checked."""
