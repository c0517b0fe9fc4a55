"""A sparkline for the table of all questions: the means of the first group's levels, the best in its own colour."""

from study.analysis.charts.svg import element
from study.analysis.stats.analysis import Group

WIDTH, HEIGHT = 144, 26


def sparkline(group: Group) -> str:
    """Return a bar for each level that has a mean; nothing where there is none."""
    means = [(level.label, level.time.value) for level in group.levels if level.time]
    if not means:
        return ""
    most, step = max(value for _, value in means), WIDTH / len(means)
    bars = []
    for place, (label, value) in enumerate(means):
        tall = (HEIGHT - 2) * value / most
        look = "best" if label == group.best else "doubt" if label in group.unfair else "plain"
        box = {"x": place * step + 1, "y": HEIGHT - tall, "width": max(1.0, min(step - 2, 22.0)), "height": tall}
        bars.append(element("rect", **box, class_=f"mark bar {look}"))
    told = ", ".join(f"{label}: {value:.3g} s" for label, value in means[:12])
    return element("svg", *bars, viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="spark", role="img", aria_label=told)
