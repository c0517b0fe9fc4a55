"""The verb ``tune``."""

import argparse

from study.base import plain_matplotlib
from study.verbs.declare import argument, say, verb


@verb(
    argument("study", help="name of a study, or the path of its file"),
    argument("--minutes", type=float, default=5.0, help="time of the race (default: 5)"),
    argument(
        "--device",
        choices=["cpu", "cuda"],
        help="default: the first of the study's devices that is here",
    ),
)
def tune(options: argparse.Namespace) -> None:
    """Find the settings that train a study's network fastest on this machine, and what they
    gain."""
    plain_matplotlib()
    from study_tune.step import tune

    tune(options.study, options.minutes, options.device, say)
