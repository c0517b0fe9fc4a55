"""What the commands of this folder share: their lines, their usage, and a study's error in one
line."""

import sys
from collections.abc import Callable, Iterable

import study


def run(usage: str, fits: bool, lines: Callable[[], Iterable[object]]) -> int:
    """Print the lines, if the arguments fit; return the exit code: 2 with the usage, 1 with a
    study's error."""
    if not fits:
        print(f"usage: python -m replications.{usage}", file=sys.stderr)
        return 2
    try:
        for line in lines():
            print(line)
    except study.StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
