"""The table of laws in words."""

from study.stats.fits import Fitted
from study.words import number

FORMULAS = {
    "constant": "T0",
    "inverse": "T0 + A/b",
    "power": "Tmin + c/b^alpha",
    "rise": "T0 + A/b + g b",
    "hinge": "max(A/b, T1 + B/b)",
}


def law_formula(name: str) -> str:
    """A law as people write it."""
    return FORMULAS[name]


def coefficients(law: Fitted) -> str:
    """``T0 = 5.1 (4.9 to 5.3), A = 250 (unbounded)``: each with its interval."""
    parts = []
    for name, value in law.coefficients.items():
        bounds = law.intervals.get(name)
        if bounds is None:
            interval = "no interval"
        elif bounds.low is None and bounds.high is None:
            interval = "unbounded"
        else:
            low = "unbounded" if bounds.low is None else number(bounds.low)
            interval = f"{low} to {'unbounded' if bounds.high is None else number(bounds.high)}"
        parts.append(f"{name} = {number(value)} ({interval})")
    return ", ".join(parts)
