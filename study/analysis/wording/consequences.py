"""What each caveat does to the answer, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from study.analysis.answers.group import Group
from study.analysis.stats.caveats import WAITING_LIMIT
from study.analysis.stats.findings import Caveat, Unsuccessful
from study.analysis.wording.caveats import caveat_sentence
from study.analysis.words import MOST_NAMED, briefly, listed, on_device
from study.artifacts.setting import Setting, level_words

AGAIN = "Close other programs and run again."
MORE = "Raise `replicates` and start again: what was measured counts."

CONSEQUENCES: dict[str, tuple[str, str]] = {
    "decoded_before": (
        "Part of the gain of `loader.kind: device` is work that its clock does not count.",
        "Take it for images that, decoded, fit into the device's memory and are trained on for many epochs.",
    ),
    "not_learned": (
        "They are no candidates for the fastest: speed counts only at equal learning.",
        "Give them more epochs or another learning rate (`training.epochs`, `training.learning_rate_rule`).",
    ),
    "censored": ("Their times are those of lucky runs.", "Raise `training.epochs`."),
    "separate_starts": (
        "A difference between the sets may be the machine's.",
        "Measure them together: `python -m study retry STUDY --outcome ok`, then start again.",
    ),
    "unequal_circumstances": (
        "A difference between settings with unequal numbers may come from the numbers. Settings with equal numbers "
        "compare fairly.",
        "Give all settings one number (`training.threads`, `loader.workers`), and start again.",
    ),
    "mixed_machines": ("A difference may be the machine's.", "Measure all settings on one machine."),
    "machine_changed": ("Small differences between settings may be the machine's.", AGAIN),
    "drift": ("Late runs are not like early ones; blocks take most of it out.", AGAIN),
    "few_replicates": ("The noise is not known well: intervals are wide or missing.", MORE),
    "unsuccessful": ("Their settings are known less well, or not at all.", "See the message and the log of each run."),
    "excluded_runs": (
        "Intervals are wider without them, and fewer than three clean runs of a setting give no answer.",
        "Raise `replicates`, and start again on a quiet machine.",
    ),
    "refused_records": ("These runs are missing from every mean.", "`python -m study retry STUDY`, then start again."),
    "disturbed_runs": ("Their times may be too long.", AGAIN),
    "mixed_weights": ("Accuracies of the runs cannot be compared.", "`python -m study retry STUDY --weights`"),
    "mixed_images": ("Settings saw different images.", "`python -m study retry STUDY --outcome ok`"),
    "unequal_work": (
        "A time compares whole schedules, and not the speed of equal steps.",
        "Choose batch sizes that divide the training set, or compare images/s.",
    ),
    "wide_spread": ("The means of these settings are known less well.", MORE),
    "shared_gpu": ("Times may be too long.", "End the other processes on the GPU."),
    "busy_machine": ("Times may be too long.", AGAIN),
    "throttled": ("Times hold for this cooling and power limit.", "Cool the GPU, or say so with the number."),
    "waits_for_data": (
        "There the times are the loader's more than the device's.",
        "Use more `loader.workers`, or `loader.kind: device`.",
    ),
    "mixed_software": ("A difference may be a library's.", "Measure all settings with one image or lock."),
    "several_starts": (
        "The machine may have changed in between. The interval of a time holds for a further start, too: few starts "
        "make it wider than the runs lie apart. Ratios hardly suffer.",
        "Nothing, if no block was broken off.",
    ),
    "several_machines": (
        "A start on each machine is a start of its own in the model.",
        "Nothing, if every machine made every setting; else measure whole blocks on each.",
    ),
    "unavailable": ("Nothing is said about these settings.", "Start again on a machine that can make them."),
    "unrepeated_training": ("A difference in accuracy may be chance.", "Compare accuracies over seeds."),
    "broken_blocks": ("None: the whole block is measured again.", "Start again."),
    "never_steady": ("In a longer training their steps may be faster or slower.", "Train longer."),
    "no_steady_step": ("There is no steady step time to compare.", "Train longer."),
    "whole_batch": ("One step an epoch: the time is that of starting.", "Use more images or smaller batches."),
    "slow_steps": (
        "Training times contain these steps. Median step times leave them out.",
        "Nothing, if they are few.",
    ),
    "above_ceiling": ("Shares of the ceiling are not valid.", "Measure the ceiling again on a quiet machine."),
    "refused_samples": ("Memory and energy of these runs are not shown.", "`python -m study retry STUDY`"),
}
"""What a kind of caveat does to the answer, and what to do about it, the most important first."""
RANK = {kind: place for place, kind in enumerate(CONSEQUENCES)}


@dataclass(frozen=True)
class Warned:
    """The caveats of one kind: what is so, what it does to the answer, and what to do."""

    what: tuple[str, ...]
    effect: str
    todo: str


def ranked(caveats: Sequence[Caveat], groups: Sequence[Group] = ()) -> list[Warned]:
    """Return the caveats by kind, the most important first; ``groups`` tell which settings wait for data."""
    told: dict[str, list[str]] = {}
    for caveat in sorted(caveats, key=lambda caveat: RANK[_kind(caveat)]):
        told.setdefault(_kind(caveat), []).append(caveat_sentence(caveat))
    if "waits_for_data" in told:
        told["waits_for_data"] += waiting_settings(groups)
    return [Warned(tuple(sentences), *CONSEQUENCES[kind]) for kind, sentences in told.items()]


def waiting_settings(groups: Sequence[Group]) -> list[str]:
    """Return a sentence on the settings of each group that wait at least half of their time, if others do not."""
    found = []
    for group in groups:
        waits = {level.setting: (level.data_wait_share or 0.0) >= WAITING_LIMIT for level in group.levels}
        mine, others = [one for one in waits if waits[one]], [one for one in waits if not waits[one]]
        if mine and (others or len(groups) > 1):
            found.append(f"{on_device(group.setting)} these wait so long: {_waiting(mine, others)}.")
    return found


def _waiting(settings: Sequence[Setting], others: Sequence[Setting]) -> str:
    """Return settings by name, or many of them by the level that all of the others have and none of them has."""
    names = [one.label for one in settings]
    if len(names) <= MOST_NAMED or not others:
        return briefly(names)
    shared = set.intersection(*(set(one.levels.items()) for one in others))
    mark = sorted(level_words(*level) for level in shared.difference(*(one.levels.items() for one in settings)))
    return f"the {len(names)} settings without {listed(mark)}" if mark else briefly(names)


def _kind(caveat: Caveat) -> str:
    """Return the kind of a caveat; runs that this machine cannot make are no failure, and are named above the cards."""
    absent = isinstance(caveat, Unsuccessful) and caveat.outcome == "unavailable"
    return "unavailable" if absent else caveat.kind
