"""What people call a setting: the names that a study gives, and words for the levels of every
key."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from study.base.errors import ValueRefused, check_known

APART = (", ", " + ")
"""What parts the levels in a label."""
LONGEST = 40
"""Letters of a name."""
LEVELS: dict[str, dict[str, str]] = {
    "device": {"cpu": "CPU", "cuda": "GPU"},
    "process": {"forked": "forked process", "fresh": "fresh process"},
    "machine": {"None": "any machine"},
    "image": {"None": "the device's image"},
    "environment": {"None": "the start's packages"},
    "dataset.source": {
        "generated": "drawn images",
        "folder": "own photographs",
        "cifar10": "CIFAR-10",
        "mnist": "MNIST",
        "digits": "scanned digits",
    },
    "model.weights": {"imagenet": "ImageNet weights", "none": "random weights"},
    "training.loop": {"torch": "PyTorch loop"},
    "training.batch_size_is": {
        "global": "batch of all processes",
        "replica": "batch of each process",
    },
    "training.strategy": {
        "single": "one process",
        "ddp": "several processes",
        "ddp_two_nodes": "two nodes",
    },
    "training.processes": {"auto": "default processes"},
    "training.optimizer": {"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"},
    "training.schedule": {
        "one_cycle": "one cycle",
        "constant": "constant rate",
        "step": "rate in steps",
    },
    "training.learning_rate_rule": {
        "constant": "one learning rate",
        "linear": "linear learning rate",
        "square_root": "square-root learning rate",
    },
    "training.precision": {"auto": "default precision"},
    "training.validation": {"epoch": "validation each epoch", "end": "validation at the end"},
    "training.drop_last": {"drop last": "last batch dropped", "no drop last": "last batch kept"},
    "training.memory_format": {"contiguous": "channels first", "channels_last": "channels last"},
    "training.compile": {"compile": "compiled", "no compile": "not compiled"},
    "training.cuda_graph": {"cuda graph": "CUDA graphs", "no cuda graph": "no CUDA graphs"},
    "training.optimizer_implementation": {
        "auto": "default optimizer",
        "for_loop": "optimizer in a loop",
        "foreach": "foreach optimizer",
        "fused": "fused optimizer",
    },
    "training.deterministic": {"no deterministic": "not deterministic"},
    "training.cudnn_benchmark": {
        "cudnn benchmark": "cuDNN benchmark",
        "no cudnn benchmark": "no cuDNN benchmark",
    },
    "training.threads": {"auto": "default threads"},
    "loader.kind": {
        "workers": "data loader",
        "threads": "loader threads",
        "device": "decoded beforehand",
        "alone": "loader alone",
    },
    "loader.decoder": {"pillow": "Pillow", "torchcodec": "TorchCodec"},
    "loader.workers": {"auto": "default workers"},
    "loader.pin_memory": {
        "auto": "default pinning",
        "pin memory": "pinned memory",
        "no pin memory": "no pinned memory",
    },
    "loader.prefetch_factor": {"None": "default prefetching"},
    "inference.precision": {"fp32_onnx": "fp32 in ONNX Runtime", "int8": "int8 in ONNX Runtime"},
}
"""Words for the levels of a key, where tables show the level otherwise; all of a key differ."""
for _same in ("memory_format", "compile", "cuda_graph"):
    LEVELS[f"inference.{_same}"] = LEVELS[f"training.{_same}"]


def level_words(key: str, level: Any) -> str:
    """Return one level in words, whether it is the level itself or as tables show it."""
    if isinstance(level, bool):
        text = switch_words(key, level)
    elif isinstance(level, float) and float(f"{level:g}") == level:
        text = f"{level:g}"
    else:
        text = str(level)
    return LEVELS.get(key, {}).get(text, f"no {leaf_words(key)}" if level is None else text)


def switch_words(key: str, on: bool) -> str:
    """Return the name of a switch that is on, or `no` and its name."""
    return f"{'' if on else 'no '}{leaf_words(key)}"


def leaf_words(key: str) -> str:
    """Return the end of a dotted key in words."""
    return key.rpartition(".")[2].replace("_", " ")


Names = Mapping[str, Mapping[str, Any]]
"""Names of settings, each with the levels that it stands for, by the keys of their factors."""
Factors = Mapping[str, Sequence[Any]]
"""Levels by the keys of their factors."""
Only = Sequence[Mapping[str, Any]]
"""The levels of each setting that a study runs, where it does not run all."""


def check(names: Names, factors: Factors, only: Only) -> None:
    """Raise :class:`ValueRefused` for the first name that cannot be told from another one or from a
    level's words."""
    words = {}
    for key, known in factors.items():
        for level in known:
            words[level_words(key, level)] = f"{key} {level}"
    seen: dict[frozenset[tuple[str, Any]], str] = {}
    for name, levels in whole(names, factors, only).items():
        if not name.strip() or len(name) > LONGEST or any(mark in name for mark in APART):
            allowed = f"1 to {LONGEST} letters, without{' or'.join(f' {mark!r}' for mark in APART)}"
            raise ValueRefused(key="names", value=name, allowed=allowed)
        if name in words:
            raise ValueRefused(key="names", value=name, why=f"the level {words[name]} is called so")
        if not levels:
            raise ValueRefused(
                key=f"names.{name}", value={}, allowed="at least one level of a factor"
            )
        for key, level in levels.items():
            check_known(f"names.{name}", key, factors, "no such factor")
            check_known(f"names.{name}.{key}", level, factors[key], "no level of this factor")
        other = seen.setdefault(frozenset(levels.items()), name)
        if other != name:
            raise ValueRefused(
                key="names", value=name, why=f"it stands for the same levels as {other!r}"
            )


def whole(names: Names, factors: Factors, only: Only) -> Names:
    """Return the names with all levels that each stands for: those given, and with ``only`` those
    that follow.

    A level follows where every setting with the given levels has it, and its factor has others.
    """
    return {
        name: dict(levels) | dict(_following(levels, factors, only))
        for name, levels in names.items()
    }


def _following(
    levels: Mapping[str, Any], factors: Factors, only: Only
) -> Iterator[tuple[str, Any]]:
    mine = [
        one for one in only if all(one.get(key, level) == level for key, level in levels.items())
    ]
    for key in factors if mine else ():
        found = [one.get(key) for one in mine]
        if (
            key not in levels
            and len(factors[key]) > 1
            and all(key in one and one[key] == found[0] for one in mine)
        ):
            yield key, found[0]


def names_in(names: Names, levels: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names among ``levels``, each with the keys that it stands for: those of more
    levels go first.

    Every level has one name at most. ``names`` have all of their levels; both are as tables show
    them.
    """
    found: dict[str, list[str]] = {}
    left = dict(levels)
    for name, own in sorted(names.items(), key=lambda one: -len(one[1])):
        if all(key in left and left[key] == level for key, level in own.items()):
            found[name] = list(own)
            left = {key: level for key, level in left.items() if key not in own}
    return found
