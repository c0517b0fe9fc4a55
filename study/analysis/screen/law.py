"""The curve in words: the title of its chart, what its law says, and what is not known of it."""

from collections.abc import Iterator

from study.analysis.answers.context import Context, bounds, capital
from study.analysis.answers.curve import CurveFit
from study.analysis.answers.group import Group
from study.analysis.stats.laws import Fitted
from study.analysis.stats.log_model import SIGNIFICANCE
from study.analysis.words import law_formula, short
from study.base.strict import Strict
from study.config.settings import in_words

SIGNS = {"c": "c / b^alpha", "A": "A / b", "g": "g · b"}
"""The part of the formula that a coefficient is in, where it is not the whole of it."""


class LawSummary(Strict):
    """What the first screen says of a study's curves."""

    title: str
    """What the chart shows."""
    heading: str
    formula: str = ""
    terms: list[tuple[str, str]] = []
    """A part of the formula, and its numbers in words."""
    lines: list[str] = []
    known: bool = True
    """Whether the numbers are findings: others stand in grey."""


def law_of(context: Context, title: str) -> LawSummary | None:
    """Return the curve in words; None without one. ``title`` is that of a chart of several
    curves."""
    curves = [(group, group.curve) for group in context.groups if group.curve]
    key = in_words(context.study.curve_key or "")
    if len(curves) > 1:
        told = [
            f"**{capital(context.who(group.setting))}:** {_heading(group, curve, key)}."
            for group, curve in curves
        ]
        return LawSummary(title=title, heading=f"What depends on the {key}", lines=told)
    for group, curve in curves:
        return LawSummary(
            title=_title(group, curve, key),
            heading=capital(_heading(group, curve, key)),
            formula=f"T(b) = {law_formula(curve.line)}" if curve.line else "",
            terms=list(_terms(group, curve)),
            lines=list(_lines(group, curve)),
            known=curve.verdict.kind != "falls",
        )
    return None


def _title(group: Group, curve: CurveFit, key: str) -> str:
    labels = [level.label for level in group.timed]
    place = labels.index(group.best) if group.best else 0
    told_slower = {
        label for label, one in group.ratios.items() if one.value > 1 and one.excludes_one
    }
    slower = [one for one in labels[place + 1 :] if one in told_slower]
    told = {
        "falls": f"The time falls, and no rise shows up to {labels[-1]}",
        "flat": f"No {key} is shown to matter",
    }
    if curve.verdict.kind == "power_law":
        return f"The time falls to a floor of {short(curve.terms([1])[0].value)} s"
    if curve.verdict.kind == "turns" and curve.line and slower:
        again = f"falls to {group.best} and rises again from {slower[0]}"
        return f"The time {again if place else f'rises with the {key}'}"
    return told.get(curve.verdict.kind, "Every run")


def _heading(group: Group, curve: CurveFit, key: str) -> str:
    best = group.seconds.get(group.best or "")
    if curve.verdict.kind == "falls":
        return f"what does not depend on the {key}: not determined"
    if curve.line is None or best is None:
        return curve.text().removesuffix(".")
    stays = short(curve.terms([1])[0].value)
    if curve.line == "constant":
        return f"all {stays} s stay, whatever the {key}"
    about = "about " * _rejected(curve.models[curve.line])
    return f"{about}{stays} of the {short(best)} s do not depend on the {key}"


def _terms(group: Group, curve: CurveFit) -> Iterator[tuple[str, str]]:
    """Yield each part of the formula with its seconds at the first size, the answer's and the
    last."""
    labels = [level.label for level in group.timed]
    shown = list(dict.fromkeys([labels[0], group.best or labels[0], labels[-1]]))
    sizes = [level.x or 0 for level in group.timed if level.label in shown]
    for term in curve.terms(sizes):
        told = "at every size"
        if term.part != "stays":
            both = zip(term.seconds, shown, strict=True)
            told = ", ".join(f"{short(one)} s at {label}" for one, label in both)
        ends = ("any" if end is None else short(end) for end in (term.bounds.low, term.bounds.high))
        value = f"{short(term.value)} s (95%: {' to '.join(ends)})"
        yield SIGNS.get(term.coefficient, term.coefficient), f"{value}: {told}"
    alpha = curve.power.intervals.get("alpha") if curve.line == "power" else None
    if alpha and alpha.low and alpha.high:
        left = " to ".join(f"{2**-one:.0%}" for one in (alpha.high, alpha.low))
        told = f"{short(alpha.low)} to {short(alpha.high)} (95%)"
        yield "alpha", f"{told}: each doubling leaves {left} of what shrinks"


def _lines(group: Group, curve: CurveFit) -> Iterator[str]:
    """Yield what is known and what is not, and where the laws miss."""
    first = group.timed[0].label
    ratio = group.ratios.get(first)
    if curve.verdict.kind == "falls":
        if ratio:
            told = f"{short(ratio.value)} times as long as {group.best}{bounds(ratio)}"
            yield f"**Known:** {first} takes {told}."
        yield f"**Not known:** whether larger sizes go on falling. {curve.text()}"
    if curve.line == "rise":
        if _rejected(curve.models["rise"]):
            yield f"The curve misses {_most(curve.models['rise'].misses)}, more than the noise."
        law = f"The published law, {law_formula('power')}, can only fall"
        yield f"{law}: at its closest it misses {_most(curve.power.misses)}."


def _rejected(fit: Fitted) -> bool:
    return fit.lack_of_fit_p is not None and fit.lack_of_fit_p < SIGNIFICANCE


def _most(misses: dict[str, float]) -> str:
    worst = max(misses, key=lambda size: abs(misses[size]))
    return f"{worst} by {abs(misses[worst]):.0%}"
