"""What a reader must know before believing the numbers, in words."""

from collections.abc import Sequence
from functools import singledispatch

from study.analysis.stats import findings
from study.analysis.stats.equivalence import Sensitivity
from study.analysis.stats.findings import Caveat, SetAsideRun
from study.analysis.table.exclusions import FIRST
from study.analysis.words import agreeing, device_words, evidence_words, listed, number, short_key
from study.base.durations import quantity

FEW_RUNS = 4
"""Runs up to this number are named, more are counted."""


@singledispatch
def caveat_sentence(caveat: Caveat) -> str:
    """Return a caveat as a sentence or two."""
    raise NotImplementedError(f"no sentence for {type(caveat).__name__}")


@caveat_sentence.register
def _unsuccessful(caveat: findings.Unsuccessful) -> str:
    outcome = caveat.outcome.replace("_", " ").capitalize()
    return f"{outcome}: {_runs(caveat.runs)} ({caveat.message or 'no reason recorded'})."


@caveat_sentence.register
def _refused_records(caveat: findings.RefusedRecords) -> str:
    these = agreeing(len(caveat.files), "This record does not fit and is", "These records do not fit and are")
    return (
        f"{these} not counted: {_files(caveat.files)} ({caveat.reason}). To measure again, move such records aside "
        "with `python -m study retry`."
    )


@caveat_sentence.register
def _refused_samples(caveat: findings.RefusedSamples) -> str:
    these = agreeing(len(caveat.files), "This file of samples does", "These files of samples do")
    return f"{these} not fit the record, whose times count alone: {_files(caveat.files)} ({caveat.reason})."


def _files(names: Sequence[str]) -> str:
    """Return the names of a few files, and the number of more."""
    more = len(names) - FEW_RUNS
    return listed([*names[:FEW_RUNS], *([f"{more} more"] if more > 0 else [])])


@caveat_sentence.register
def _disturbed_runs(caveat: findings.DisturbedRuns) -> str:
    kinds = listed([f"{evidence_words(kind)} in {quantity(count, 'record')}" for kind, count in caveat.kinds.items()])
    told = f"Other work on the machine disturbed {_runs(caveat.runs)} ({kinds})."
    if not caveat.measured_again:
        return told
    times = f"{caveat.measured_again} of them {agreeing(caveat.measured_again, 'was', 'were')} measured once more"
    times = "It was measured once more" if len(caveat.runs) == 1 else times
    still = f"; disturbed again: {_runs(caveat.disturbed_again)}" if caveat.disturbed_again else ""
    first = agreeing(caveat.measured_again, "first is a cross", "firsts are crosses")
    return f"{told} {times}: the second record counts, and the {first} in the charts{still}."


@caveat_sentence.register
def _broken_blocks(caveat: findings.BrokenBlocks) -> str:
    return (
        f"A start was broken off in block {listed(list(map(str, caveat.blocks)))}: "
        f"{agreeing(caveat.records, '1 record is', f'{caveat.records} records are')} kept and not counted."
    )


@caveat_sentence.register
def _censored(caveat: findings.Censored) -> str:
    told = "; ".join(f"{one.setting.label} ({one.missed} of {one.runs} runs)" for one in caveat.missed)
    return (
        f"The target accuracy was not reached by {told}: the times of their other runs are those that happened to "
        "reach it, and such a setting cannot be called the fastest. Raise training.epochs to know its time."
    )


@caveat_sentence.register
def _not_learned(caveat: findings.NotLearned) -> str:
    told = "; ".join(f"{one.setting.label} ({one.value:.0%})" for one in caveat.accuracies)
    few = " With fewer than three runs of a setting only a large difference shows." if caveat.few_runs else ""
    if caveat.reason == "unclear":
        return f"Whether these settings learned is not known, for the accuracies of their runs differ: {told}.{few}"
    why = f"is not above chance, {caveat.beside:.0%}, by more than noise"
    if caveat.reason == "below_best":
        points = f"{100 * caveat.margin:g} points and the noise between runs"
        why = f"is below the best one's, {caveat.beside:.0%}, by more than {points}"
    less = "learned less than the best one" if caveat.reason == "below_best" else "have not learned"
    return f"These settings {less}, however fast they are: {told}. Their accuracy {why}.{few}"


@caveat_sentence.register
def _few_replicates(caveat: findings.FewReplicates) -> str:
    return f"{quantity(caveat.replicates, 'run')} of each setting: an interval is worth reading from three on."


@caveat_sentence.register
def _several_starts(caveat: findings.SeveralStarts) -> str:
    return f"The runs come from {caveat.starts} starts of the pipeline."


@caveat_sentence.register
def _several_machines(caveat: findings.SeveralMachines) -> str:
    return f"The runs come from {caveat.machines} machines. Each may have a pace of its own, also if all are alike."


@caveat_sentence.register
def _mixed_software(caveat: findings.MixedSoftware) -> str:
    return f"The runs used different software: {' against '.join(_apart(caveat.software))}."


def _apart(lists: Sequence[str]) -> list[str]:
    """Return of each list, its items parted by commas, those that not all of the lists have."""
    parts = [text.split(", ") for text in lists]
    return [", ".join(item for item in own if not all(item in other for other in parts)) or "none" for own in parts]


@caveat_sentence.register
def _mixed_weights(caveat: findings.MixedWeights) -> str:
    return f"The runs used different starting weights: {'; '.join(caveat.weights)}."


@caveat_sentence.register
def _unrepeated_training(caveat: findings.UnrepeatedTraining) -> str:
    return (
        f"Training did not repeat itself on {_device(caveat.device)}: its runs measured {caveat.weights} different "
        "sets of weights, so that a difference in accuracy may be theirs."
    )


@caveat_sentence.register
def _mixed_images(caveat: findings.MixedImages) -> str:
    return f"The runs on {_device(caveat.device)} used different images: {', '.join(caveat.images)}."


@caveat_sentence.register
def _decoded_before(caveat: findings.DecodedBefore) -> str:
    return (
        "With loader.kind: device the images are decoded before the clock starts; "
        f"{listed(caveat.others)} decode them in every epoch."
    )


@caveat_sentence.register
def _unequal_circumstances(caveat: findings.UnequalCircumstances) -> str:
    name = {"threads": "CPU threads", "workers": "loader workers"}[caveat.what]
    if caveat.factor is None:
        told = f"from {caveat.counts['fewest']} to {caveat.counts['most']}"
    else:
        key = short_key(caveat.factor)
        told = listed([f"{count} with {key} {level}" for level, count in caveat.counts.items()])
    return f"Not all settings on {_device(caveat.device)} had the same number of {name}: {told}."


@caveat_sentence.register
def _shared_gpu(caveat: findings.SharedGpu) -> str:
    return f"Other processes computed on the GPU when {quantity(caveat.runs, 'run')} began."


@caveat_sentence.register
def _busy_machine(caveat: findings.BusyMachine) -> str:
    return (
        f"The machine was busy with other work ({caveat.percent:g}% of its CPUs or more) when "
        f"{quantity(caveat.runs, 'run')} began."
    )


@caveat_sentence.register
def _throttled(caveat: findings.Throttled) -> str:
    return f"The GPU's clock was held down in {quantity(caveat.runs, 'run')}: {listed(caveat.reasons)}."


@caveat_sentence.register
def _mixed_machines(caveat: findings.MixedMachines) -> str:
    return f"The runs on {_device(caveat.device)} come from different machines: {'; '.join(caveat.names)}."


@caveat_sentence.register
def _machine_changed(caveat: findings.MachineChanged) -> str:
    low, high = caveat.fastest_seconds, caveat.slowest_seconds
    where = f"the CPUs beside {_device(caveat.device)}" if caveat.host else _device(caveat.device)
    return (
        f"The machine itself changed by {high / low:.1f}x during this study: the same reference workload on {where} "
        f"took {1000 * low:.3g} to {1000 * high:.3g} ms. Where the runs suffice, the tables show times with and "
        "without that change."
    )


@caveat_sentence.register
def _separate_starts(caveat: findings.SeparateStarts) -> str:
    return f"These sets of {short_key(caveat.factor)} share no block of runs: {'; '.join(map(listed, caveat.sets))}."


@caveat_sentence.register
def _wide_spread(caveat: findings.WideSpread) -> str:
    told = "; ".join(f"{one.setting.label} ({one.value:.0%})" for one in caveat.spreads)
    return f"The standard deviation between runs is {caveat.limit:.0%} of the mean or more: {told}."


@caveat_sentence.register
def _excluded_runs(caveat: findings.ExcludedRuns) -> str:
    told = "; ".join(f"{run.run}, {_reason(run)}" for run in caveat.runs)
    return (
        f"{len(caveat.runs)} of {caveat.of} runs {agreeing(len(caveat.runs), 'is', 'are')} kept and shown but not "
        f"analysed, by rules that were fixed before any run: {told}."
    )


def _reason(run: SetAsideRun) -> str:
    reason = "the first of its start, with no warm-up run before it" if run.reason == FIRST else "far from the others"
    beside = f", {number(run.seconds)} s" + (f" against {number(run.mean_seconds)} s" if run.mean_seconds else "")
    if run.warm_up_seconds is None or run.usual_warm_up_seconds is None:
        return reason + beside
    warm_up = f"its warm-up took {run.warm_up_seconds:.3g} s, the others' {run.usual_warm_up_seconds:.3g} s"
    return f"{reason}{beside} ({warm_up})"


@caveat_sentence.register
def _unequal_work(caveat: findings.UnequalWork) -> str:
    why = f", because {listed([CAUSES[cause] for cause in caveat.causes])}" if caveat.causes else ""
    images = f"{caveat.least_images} to {caveat.most_images} images in the whole schedule"
    return f"The settings do different amounts of work: {images}{why}."


CAUSES = {
    "epochs": "their numbers of epochs differ",
    "data": "their data sets differ in size",
    "partial_batch": "the last partial batch is dropped or kept",
}


@caveat_sentence.register
def _whole_batch(caveat: findings.WholeBatch) -> str:
    return f"Batch size {caveat.batch_size}: one batch holds the whole training set of {caveat.images} images."


@caveat_sentence.register
def _no_steady_step(caveat: findings.NoSteadyStep) -> str:
    return f"Batch size {_sizes(caveat.batch_sizes)}: no step is left after the warm-up."


@caveat_sentence.register
def _waits_for_data(caveat: findings.WaitsForData) -> str:
    return (
        f"On {_device(caveat.device)} training waits for data at least half of its time at batch size "
        f"{_sizes(caveat.batch_sizes)}, validation apart: the median over all runs of a size."
    )


@caveat_sentence.register
def _never_steady(caveat: findings.NeverSteady) -> str:
    return f"{_runs(caveat.runs)} never became steady: the step time still changed at the end."


@caveat_sentence.register
def _slow_steps(caveat: findings.SlowSteps) -> str:
    return (
        f"Some steps took at least 50% longer than the median step of their run: {quantity(caveat.steps, 'step')} in "
        f"{_runs(caveat.runs)}."
    )


@caveat_sentence.register
def _above_ceiling(caveat: findings.AboveCeiling) -> str:
    return (
        f"{_runs(caveat.runs)} computed faster than the measured matrix product, by up to {caveat.share:.1f}x: the "
        "machine was slower when that was measured."
    )


@caveat_sentence.register
def _drift(caveat: findings.Drift) -> str:
    way = "longer" if caveat.change > 1 else "shorter"
    return (
        f"Times grow {way} along the order of execution, by {abs(caveat.change - 1):.0%} from the first run to the "
        f"last (p = {caveat.p:.2g}, settings, blocks and starts accounted for): the machine drifted. Each block "
        "was planned to hold every setting once, in an order drawn anew."
    )


def sensitivity_sentence(found: Sensitivity) -> str:
    """Return what a study of this size could have seen, and how to see more."""
    least = f"{found.smallest_ratio:.3g}"
    seen = f"A comparison of two settings in {found.blocks} blocks like these finds ratios from {least} on"
    margin = f"a difference of {found.margin:.0%}"
    if found.smallest_ratio <= 1 + found.margin:
        told = f"{seen}, with a power of 80%: {margin} would have shown."
    elif found.blocks_for_margin is None:
        told = f"{seen}, with a power of 80%; no number of blocks up to 1000 finds {margin}."
    else:
        told = f"{seen}, with a power of 80%; {margin} takes {found.blocks_for_margin} blocks (`replicates`)."
    return f"{told} {_spreads(found)}"


def _spreads(found: Sensitivity) -> str:
    """Return what varied, and what narrows which interval."""
    names = {"noise": "runs of a block", "block": "blocks of a start", "start": "starts"}
    apart = [f"{names[name]} differ by {100 * spread:.2g}%" for name, spread in found.spreads.items()]
    return (
        f"{listed(apart)[0].upper()}{listed(apart)[1:]}. More blocks give a ratio a narrower interval; more starts "
        "give the time of a setting a narrower one."
    )


def _device(device: str) -> str:
    return device_words(device, article=True)


def _sizes(batch_sizes: Sequence[int]) -> str:
    return listed([str(size) for size in batch_sizes])


def _runs(runs: Sequence[str]) -> str:
    return listed(runs) if len(runs) <= FEW_RUNS else f"{len(runs)} runs"
