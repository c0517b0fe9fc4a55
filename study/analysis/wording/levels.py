"""The verdict on one setting, in a few words: the last column of a table."""

from study.analysis.stats.analysis import Group, Level
from study.analysis.words import listed


def level_verdict(level: Level, group: Group) -> str:
    """Return what the runs determine of a level beside the fastest, in a few words; nothing where it is alone."""
    if level.time is None:
        return listed([name.replace("_", " ") for name in level.outcomes]) if level.outcomes else "no run"
    if level.label in group.unfair:
        return {"not_learned": "not shown to have learned as well", "censored": "missed the target"}[
            group.unfair[level.label]
        ]
    several = len(group.levels) > 1
    if several and group.best is None:
        return "cannot say"
    if level.undetermined:
        behind = several and level.label not in group.indistinguishable
        return "slower, no interval" if behind else "cannot say"
    if not several:
        return ""
    if level.label == group.best:
        return "smallest mean" if len(group.indistinguishable) > 1 else "fastest"
    if level.label in group.equivalent:
        return "the same, within the margin"
    return "may be as fast" if level.label in group.indistinguishable else "slower"
