"""A claimed ratio of two devices' times."""

import re
from collections.abc import Sequence
from decimal import Decimal
from statistics import median

from study.analysis.published.claims import Claim, agrees
from study.analysis.words import interval, listed, number, plain
from study_extras.claims.printed import NO_NOISE, Examined, Printed, four, notes, ratio, used


def examine_speedup(claim: Claim, row: Printed, times: Sequence[Printed], epochs: Sequence[Printed]) -> Examined:
    """Return a claimed ratio, printed as ``row``, beside those of the study's printed times.

    ``epochs`` are the rows of single epochs.
    """
    cpu = next((time for time in times if time.device == "cpu" and time.source == row.source), None)
    gpus = [time for time in times if cpu and time.device == "cuda" and time.epochs == cpu.epochs]
    own = [gpu for gpu in gpus if gpu.source == row.source]
    if cpu is None or not own:
        given, verdict = [], "No time of either device is printed beside it: it cannot be checked."
    else:
        tables = dict.fromkeys(gpu.table for gpu in gpus)
        given = [_over(cpu, [gpu for gpu in gpus if gpu.table == table]) for table in tables]
        given += _again(row, cpu, gpus) + _epochs(row, epochs) + notes([cpu, *gpus])
        verdict = _verdict(row, cpu, own, gpus)
    return Examined(
        claim,
        tuple(given),
        verdict,
        gives="CPU's time over it",
        used=(used(cpu, ""), *(used(gpu, four(_value(cpu, gpu))) for gpu in gpus)) if cpu else (),
    )


def _value(over: Printed, under: Printed) -> float:
    return ratio([over.value], [under.value]).value


def _over_median(cpu: Printed, gpus: Sequence[Printed]) -> str:
    return four(ratio([cpu.value], [median(row.value for row in gpus)]).value)


def _over(cpu: Printed, gpus: Sequence[Printed]) -> str:
    """Return a sentence on the CPU's time over the GPU runs of one table."""
    ranked = sorted(gpus, key=lambda row: row.value)
    fastest, slowest = ranked[0], ranked[-1]
    first = f"{plain(fastest.value)} s ({fastest.table}: {fastest.on})"
    if len(gpus) == 1:
        return f"The CPU's {plain(cpu.value)} s over the GPU's {first} is {four(_value(cpu, fastest))}."
    return (
        f"The CPU's {plain(cpu.value)} s over the fastest of {len(gpus)} GPU runs, {first}, is "
        f"{four(_value(cpu, fastest))}; over their median, "
        f"{plain(median(row.value for row in gpus))} s, it is {_over_median(cpu, gpus)}, and over the slowest, "
        f"{plain(slowest.value)} s ({slowest.on}), {four(_value(cpu, slowest))}."
    )


def _twins(row: Printed, gpus: Sequence[Printed]) -> list[Printed]:
    """Return other runs of the same setting."""
    return [other for other in gpus if other != row and other.on == row.on]


def _again(claim: Printed, cpu: Printed, gpus: Sequence[Printed]) -> list[str]:
    """Return sentences on the interval of the claimed ratio, for settings that were run again."""
    sentences = []
    for row in gpus:
        twins = _twins(row, gpus)
        if not twins or row.source != claim.source or not agrees(claim, cpu, row):
            continue
        runs = [row.value, *(twin.value for twin in twins)]
        both = ratio([cpu.value], runs)
        if both.low is not None and both.high is not None:
            told = interval(both.low, both.high)
            bounds = f"is {told} (95%)" if told else f"says nothing: {len(runs)} runs are too few"
            sentences.append(
                f"{row.on} took {plain(row.value)} s, and {listed([plain(run) for run in runs[1:]])} s when it was run "
                f"again. Over their geometric mean the ratio is {number(both.value)}; its interval by the noise "
                f"between them, taken for the CPU's too, {bounds}."
            )
    return sentences


def _epochs(claim: Printed, epochs: Sequence[Printed]) -> list[str]:
    """Return sentences on the number of epochs in the log, and on the ratio in each where it prints their times."""
    count = len({re.sub(r"\D", "", row.metric) for row in epochs})
    sentences = [f"The log prints {count} epochs of each run."] if count else []
    gpu = {row.metric: row for row in epochs if row.device == "cuda"}
    pairs = [
        (row, gpu[row.metric])
        for row in epochs
        if row.device == "cpu" and row.metric in gpu and row.metric.endswith("_time")
    ]
    if pairs:
        ratios = [_value(*pair) for pair in pairs]
        none = "" if any(agrees(claim, *pair) for pair in pairs) else "; no epoch gives the claimed ratio"
        sentences.append(f"Epoch by epoch the times give {four(min(ratios))} to {four(max(ratios))}{none}.")
    return sentences


def _verdict(claim: Printed, cpu: Printed, own: Sequence[Printed], gpus: Sequence[Printed]) -> str:
    """Return the verdict; ``own`` are the GPU times of the claim's document, ``gpus`` those of all documents."""
    said = plain(claim.value)
    row = next((gpu for gpu in own if agrees(claim, cpu, gpu)), None)
    if row is None:
        given = listed([f"{four(_value(cpu, gpu))} (rounded as the claim is: {_like(claim, cpu, gpu)})" for gpu in own])
        work = f" of {cpu.epochs} epochs" if cpu.epochs else ""
        return f"The printed times{work} give {given}, not {said}. {NO_NOISE}: no interval can be given."
    if len(own) == 1:
        text = f"The printed times give it: {four(_value(cpu, row))}."
    else:
        which = "the fastest" if row.value == min(gpu.value for gpu in own) else "one"
        text = (
            f"{four(_value(cpu, row))} is one CPU run over {which} of {len(own)} GPU runs ({row.on}); over their "
            f"median it is {_over_median(cpu, own)}."
        )
    return f"{text}{_elsewhere(cpu, row, own)} {NO_NOISE}" + (
        f", and another run of the same setting gives {four(_value(cpu, twins[0]))}."
        if (twins := _twins(row, gpus))
        else ": no interval can be given."
    )


def _like(claim: Printed, over: Printed, under: Printed) -> str:
    """Return a ratio with the number of digits of the claim."""
    return str(Decimal(_value(over, under)).quantize(Decimal(plain(claim.value))))


def _elsewhere(cpu: Printed, row: Printed, own: Sequence[Printed]) -> str:
    """Return sentences on the same setting on other hardware."""
    same = [other for other in own if other.hardware != row.hardware and other.setting == row.setting]
    return "".join(f" The same setting on {other.hardware} gives {four(_value(cpu, other))}." for other in same)
