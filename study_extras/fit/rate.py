"""A column of a rate, such as images per second: the higher, the faster. It is known by its name."""

import re
from itertools import pairwise

RATES = re.compile(
    "throughputs?|thr?u?puts?|thpts?|tputs?|rates?|speed|speedup|[fisqrt]ps|iops|[mgtp]?flops|[kmg]?hz|bandwidth|"
    "frequency|durchsatz|[mh]fu|util|utili[sz]ation|efficiency|accuracy"
)
TIMES = re.compile("s|secs?|seconds?|ms|us|ns|milliseconds?|mins?|minutes?|h|hrs?|hours?")
COUNTED = re.compile(
    "imgs?|images|samples|its?|iters|iterations|steps|batches|tokens|toks?|records|frames|items|examples|rows|reqs|"
    "requests|queries|ops|[kmg]i?b|bytes|epochs"
)
"""What is counted in a second, where the name has neither ``/`` nor ``per``: ``img_s``. A ``step_s`` is a time."""


def is_rate(column: str) -> bool:
    """Return whether a column holds a rate by its name: ``throughput_img_s``, ``images/sec``, ``imagesPerSecond``."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower().replace("⁻¹", "^-1").replace("/", " per ")
    if re.search(r"(?<![a-z])(s|sec|ms)\s*\^?-1(?!\d)", text):
        return True
    words = re.findall(r"[^\W\d_]+", text)
    pairs = list(pairwise(words))
    if any(first == "per" and TIMES.fullmatch(last) for first, last in pairs):
        return True
    if "time" in words or any(TIMES.fullmatch(first) and last == "per" for first, last in pairs):
        return False
    counted = any(COUNTED.fullmatch(first) and TIMES.fullmatch(last) for first, last in pairs)
    return counted or any(map(RATES.fullmatch, words))
