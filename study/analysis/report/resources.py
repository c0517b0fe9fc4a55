"""Which of a group's resources the page shows beside its times, and how."""

from collections.abc import Callable
from dataclasses import dataclass

from study.analysis.stats.analysis import Group
from study.analysis.words import bytes_words, number


@dataclass(frozen=True)
class Resource:
    """An entry of ``Level.resources``, with its heading and how it is shown."""

    key: str
    words: str
    show: Callable[[float], str]
    shared: bool = False
    """Of many processes that train one model alone."""


def _percent(value: float) -> str:
    return f"{value:.0f}%"


def _share(value: float) -> str:
    return f"{100 * value:.3g}%"


def _giga(value: float) -> str:
    return f"{number(value / 1e9)}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _milli(value: float) -> str:
    return f"{number(value * 1e3)}"


RESOURCES = (
    Resource("parameters", "parameters", _count),
    Resource("replicas", "processes that train", _count, shared=True),
    Resource("global_batch_size", "images of a step, all processes", _count, shared=True),
    Resource("replica_batch_size", "images of a step, each process", _count, shared=True),
    Resource("epoch_seconds", "training of an epoch (s)", number),
    Resource("valid_seconds", "validation, all epochs (s)", number),
    Resource("gpu_utilisation_percent", "GPU busy", _percent),
    Resource("cpu_percent", "CPUs busy", _percent),
    Resource("peak_device_allocated_bytes", "device memory, tensors", bytes_words),
    Resource("peak_all_device_allocated_bytes", "device memory, tensors of all processes", bytes_words, shared=True),
    Resource("peak_device_used_bytes", "whole device, sampled", bytes_words),
    Resource("peak_tree_resident_bytes", "host memory with workers", bytes_words),
    Resource("energy_joules", "energy (J)", number),
    Resource("images_per_joule", "images per joule", number),
    Resource("idle_watts", "idle (W)", number),
    Resource("flop_per_image", "GFLOP an image", _giga),
    Resource("steady_images_per_second", "images/s, the median step alone", number),
    Resource("flop_per_second", "GFLOP/s, the median step alone", _giga),
    Resource("ceiling_share", "of a measured matrix product, the median step", _share),
    Resource("first_batch_seconds", "first batch of an epoch (s)", number),
    Resource("loader_start_seconds", "of that, workers' start, all epochs (s)", number),
    Resource("warm_up_extra_seconds", "warm-up beyond steady steps (s)", number),
    Resource("compile_seconds", "compilation (s)", number),
    Resource("latency_p50_seconds", "latency of a batch, median (ms)", _milli),
    Resource("latency_p90_seconds", "latency, 90th percentile (ms)", _milli),
    Resource("latency_p99_seconds", "latency, 99th percentile (ms)", _milli),
    Resource("fp32_accuracy", "accuracy of the same weights as trained, fp32", _share),
    Resource("int8_convolutions_share", "convolutions executed in int8", _share),
    Resource("conversion_seconds", "conversion, before any batch (s)", number),
)


def resources(group: Group) -> list[Resource]:
    """Those of which any level tells something."""
    many = any(level.resources.get("replicas", 1) > 1 for level in group.levels)
    return [
        resource
        for resource in RESOURCES
        if any(resource.key in level.resources for level in group.levels) and (many or not resource.shared)
    ]
