"""How the settings learned: accuracy and loss after each epoch, and accuracy by the clock.

Accuracies and seconds are means over the runs of a setting, losses are medians.
"""

from functools import partial
from math import ceil
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.analysis import StudyResult
from study.analysis.answers.context import Context, capital
from study.analysis.figures.rows import LINE, lines_of
from study.analysis.figures.settings import Rows
from study.analysis.figures.style import NARROW, PALETTE, SMALL, Chart, Sheet, line, plain
from study.analysis.stats.usable import counted
from study.analysis.words import short
from study.config.settings import in_words

FULL = 1088
"""Pixels of the whole page, which the panels take on a desk."""
MOST_SETTINGS, MOST_COLUMNS = 12, 6
"""Settings from which each group's fastest stands alone, and panels side by side."""
LEFT, HIGH, BELOW = 46.0, 92.0, 48.0
"""Pixels left of all panels, of the height of each, and below it."""
ACCURACY, LOSS, CLOCK = "accuracy", "valid_loss", "seconds"
TYPICAL = {ACCURACY: "mean", CLOCK: "mean", LOSS: "median", "train_loss": "median"}
SIGNS = {"answer": "best", "out": "unlearned", "other": "learned"}
"""The sign of a setting's line in the key, by the look of the setting."""


class Course(NamedTuple):
    """How one setting learned."""

    name: str
    """With its accuracy and its seconds in the end."""
    last: float
    """Its accuracy in the end."""
    look: str
    runs: pd.DataFrame
    """Its epochs of runs that count."""
    typical: pd.DataFrame
    """What is typical of them, by epoch."""

    def line(self, axes: Axes, x: Any, part: str) -> None:
        """Draw its thick line, with dots that are hollow where it did not learn as well."""
        inner = PALETTE["bg" if self.look == "out" else self.look]
        axes.plot(
            x,
            self.typical[part],
            "o-",
            color=PALETTE[self.look],
            mfc=inner,
            lw=1.8,
            ms=4,
            clip_on=False,
            gid="mean",
        )


class Courses(NamedTuple):
    """All that both charts show."""

    every: list[Course]
    best: float
    """The highest accuracy in the end."""
    margin: float
    chance: float

    def frame(self, axes: Axes, part: str) -> None:
        """Draw the grid of a panel; of accuracies also the tint within the margin, and chance."""
        plain(axes)
        axes.margins(x=0)
        axes.locator_params(nbins=4, steps=[1, 2, 5, 10], integer=True)
        values = pd.concat([one.runs[part] for one in self.every])
        if part == LOSS:
            # One run that went astray flattens no other.
            usual = pd.concat([one.typical[LOSS] for one in self.every]).max()
            axes.set_ylim(0, 1.05 * min(values.max(), 2 * usual))
            return
        axes.set_ylim(min(values.min(), self.chance) - 0.02, values.max() + 0.02)
        axes.yaxis.set_major_formatter("{x:.0%}")
        axes.axhspan(self.best - self.margin, self.best, color=PALETTE["answer"], alpha=0.2, lw=0)
        axes.axhline(self.chance, color=PALETTE["muted"], ls=":", gid="chance")


def learning_charts(result: StudyResult, found: Rows) -> dict[str, Chart]:
    """Return accuracy and loss by epoch, in two panels for each setting, and mean accuracy by mean
    seconds; nothing where no accuracy is known of two epochs."""
    study = result.plan.study
    groups = result.analysis.groups
    many = sum(len(group.levels) for group in groups) > MOST_SETTINGS
    context = Context(study, groups)
    every = []
    epochs = counted(result.epochs).dropna(subset=[ACCURACY])
    for group in groups:
        # Beside other groups, what a setting is in its own says little.
        who = context.who(group.setting)
        for level in group.levels:
            own = epochs["group"].eq(group.label) & epochs["level"].eq(level.label)
            typical = epochs[own].groupby("epoch").agg(TYPICAL)
            if len(typical) < 2 or (many and level.label != group.best):
                continue
            row = found[group.label, level.label]
            words = capital(f"{level.label}, {who or row.verdict}".rstrip(", "))
            last, seconds = typical[[ACCURACY, CLOCK]].iloc[-1]
            name = f"{words}: {last:.0%} in {short(seconds)} s"
            every.append(Course(name, last, row.look, epochs[own], typical))
    if not every:
        return {}
    chance = counted(result.frame)["chance_accuracy"].fillna(0.0).max()
    best = max(one.last for one in every)
    margin = study.learning_margin
    courses = Courses(every, best, margin, chance)
    within = f"within {100 * margin:g} points of the best, {best:.0%}"
    both = (("within", within), ("published", f"chance, {chance:.0%}"))
    key = (
        ("block", "one run"),
        ("learned", "accuracy: mean; loss: median"),
        ("unlearned", "did not learn as well"),
        ("training", "loss in training, median"),
    )
    out = sum(one.look == "out" for one in every)
    title = f"The best accuracy is {best:.0%}"
    if out:
        title += f"; {out} of {len(every)} did not learn as well"
    by = in_words(context.factor or "setting")
    under = f"Accuracy and loss on held-out images after each epoch, by {by}"
    if many:
        under += "; of each way its fastest setting"
    signs = [(SIGNS[one.look], f"{at}: {one.name}") for at, one in enumerate(every, start=1)]
    return {
        "learning": Chart(
            title=title,
            subtitle=under,
            draw=partial(_panels, courses),
            key=(*key, *both),
            width=FULL,
        ),
        "clock": Chart(
            title="Accuracy by the clock",
            subtitle="Mean accuracy by mean seconds; a dot is the end of an epoch",
            draw=partial(_by_clock, courses),
            key=(*signs, *both),
            width=FULL,
        ),
    }


def _panels(found: Courses, width: int) -> Figure:
    """Return the settings side by side, each with its accuracy above its loss."""
    columns = min(len(found.every), 2 if width == NARROW else MOST_COLUMNS)
    wide = (width - LEFT) / columns
    heads = [lines_of(one.name, wide - 8, "bold") for one in found.every]
    head = LINE * max(map(len, heads)) + 4
    high = head + 2 * (HIGH + BELOW)
    sheet = Sheet(width, high * ceil(len(heads) / columns))
    for place, one in enumerate(found.every):
        row, column = divmod(place, columns)
        left = LEFT + wide * column
        top = high * row + head
        ink = "muted" if one.look == "out" else one.look
        for up, told in enumerate(heads[place][::-1]):
            sheet.text(left, top - 8 - LINE * up, told, ink, bold=True)
        for part in (ACCURACY, LOSS):
            axes = sheet.axes(left, top, left + wide - 20, top + HIGH)
            found.frame(axes, part)
            axes.tick_params(labelleft=not column)
            limit = axes.get_ylim()[1]
            runs = one.runs.pivot(index="epoch", columns="run", values=part).clip(upper=limit)
            axes.plot(runs, color=PALETTE[one.look], lw=0.9, alpha=0.45, gid="run")
            one.line(axes, one.typical.index, part)
            top += HIGH + BELOW
        training = one.typical["train_loss"].clip(upper=limit)
        line(axes, "training", training.index, training, gid="training")
        sheet.text(left, top - HIGH - BELOW - 8, "loss", "muted", SMALL)
    return sheet.figure


def _by_clock(found: Courses, width: int) -> Figure:
    """Return a line for each setting, with the number of its name in the key."""
    sheet = Sheet(width, 286)
    axes = sheet.axes(LEFT, 16, width - 20, 262)
    found.frame(axes, ACCURACY)
    axes.xaxis.set_major_formatter("{x:g} s")
    for number, one in enumerate(found.every, start=1):
        clock = one.typical[CLOCK]
        one.line(axes, clock, ACCURACY)
        end = clock.iloc[-1], one.last
        axes.text(*end, str(number), color=PALETTE["ink"], size=SMALL, va="bottom")
    axes.set_xlim(0)
    return sheet.figure
