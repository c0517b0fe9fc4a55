"""How the answer's ratio depends on the length of the job, in epochs.

A job that is shorter than the study's is a run without its later epochs. A longer one goes on with
the run's mean epoch, from the third on: the first two hold the start. Each length has the ratio
and the interval of the model that gives the answer's own.
"""

import pandas as pd

from study.analysis.answers.context import SCOPE, bounds
from study.analysis.answers.contrast import Contrast
from study.analysis.answers.ways import Ways
from study.analysis.groups import groups_of
from study.analysis.ratios import overalls_of, quotient_of, ratios_of
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.usable import counted
from study.analysis.words import at_setting, short
from study.artifacts.setting import EVERYWHERE, Setting
from study.base.errors import quantity
from study.base.strict import Strict
from study.config.study import Study
from study.config.times import TIMES

LENGTHS = (1, 2, 4, 25, 100)
"""Epochs of the jobs beside the study's own."""
START = 2
"""Epochs that hold the start."""


class Point(Strict):
    """The ratios at one length."""

    epochs: int | None
    """Null for a job without end: the ratio of mean epochs."""
    ratios: list[Estimate]
    """One for each setting of the answer."""


class Length(Strict):
    """How many times as fast the answer's setting is in shorter and in longer jobs."""

    own: int
    """Epochs of the study."""
    at: list[Setting]
    """At most two, or one without levels."""
    points: list[Point]
    """The shortest job first, that without end last."""

    def rows(self, scope: str = SCOPE) -> list[tuple[str, list[str]]]:
        """Return each length in words, with its ratios and their intervals."""
        found = []
        for point in self.points:
            name = quantity(point.epochs, "epoch") if point.epochs else "no end"
            if point.epochs == self.own:
                name += ", this study"
            about = "about " if (point.epochs or 0) > self.own else ""
            told = [
                f"{about}{short(ratio.value)} times{bounds(ratio, scope)} {at_setting(at)}".rstrip()
                for ratio, at in zip(point.ratios, self.at, strict=True)
            ]
            found.append((name, told))
            scope = ""
        return found


def length_of(
    study: Study, frame: pd.DataFrame, epochs: pd.DataFrame, answer: object
) -> Length | None:
    """Return the ratios of an answer by the length of the job.

    None for an answer without a ratio of its own, for a time that is no whole training or ends at a
    target, and for runs of one epoch or of different lengths.
    """
    counts = counted(epochs).set_index("run")
    y = study.total
    lengths = {int(last) for last in counts.groupby("run")["epoch"].max()}
    if (
        not isinstance(answer, (Ways, Contrast))
        or TIMES[y].spans != "training"
        or len(lengths) != 1
    ):
        return None
    if isinstance(answer, Ways) and answer.told(answer.beside) != answer.beside.times:
        return None
    (own,) = lengths
    if own == 1 or study.training.target_accuracy:
        return None
    seconds = counts["train_seconds"]
    if y != "train_seconds":
        # What a run validates in the end alone, it does once, whatever its length.
        each = counts.groupby("run")["valid_seconds"].transform("min") > 0
        seconds = seconds + counts["valid_seconds"] * each
    mean = seconds[counts["epoch"] > min(START, own - 1)].groupby("run").mean()
    points = []
    for length in [*sorted({*LENGTHS, own}), None]:
        times = frame["run"].map(mean)
        if length is not None:
            later = seconds.where(counts["epoch"] > length, 0.0).groupby("run").sum()
            times = frame[y] + max(length - own, 0) * times - frame["run"].map(later)
        found = _ratios(study, frame.assign(**{y: times}), answer)
        points.append(Point(epochs=length, ratios=list(found.values())))
    return Length(own=own, at=list(found), points=points)


def _ratios(study: Study, frame: pd.DataFrame, answer: Ways | Contrast) -> dict[Setting, Estimate]:
    """Return the ratios that an answer prints, by their setting, from a table of timings."""
    if isinstance(answer, Ways):
        ends = [answer.beside, answer.ways[0]]
        pair = [groups_of(study, frame[frame["group"] == way.group.label])[0] for way in ends]
        slower, faster = enumerate(way.level.label for way in ends)
        return {EVERYWHERE: quotient_of(pair, slower, faster, study.total, len(answer.ways) - 1)}
    groups = groups_of(study, frame)
    shown = {answer.least.at, answer.most.at}
    turned = answer.most.ratio.value < 1
    return {
        one.at: one.together.inverse if turned else one.together
        for one in ratios_of(study, groups, overalls_of(study, groups, answer.contrast))
        if one.faster == answer.faster and one.at in shown
    }
