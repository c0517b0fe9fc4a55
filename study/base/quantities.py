"""How numbers of things and durations are said, wherever one is."""


def duration_words(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours, in two digits or so: ``40 s``, ``3 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else "1 s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def quantity(count: int, thing: str) -> str:
    """Return a number of things, such as ``1 run`` or ``2 runs``."""
    return f"{count} {thing}{'s' * (count != 1)}"
