"""What a reader must know before believing the numbers."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Literal

import pandas as pd

from study.analysis.stats import findings
from study.analysis.stats.findings import Caveat, OfSetting, SetAsideRun
from study.analysis.stats.gate import separate_sets
from study.analysis.stats.groups import GroupFit
from study.analysis.stats.machine_change import CHANGE_LIMIT, REFERENCE_COLUMNS
from study.analysis.stats.ratios import CIRCUMSTANCES
from study.analysis.stats.usable import counted, row_settings
from study.analysis.table.exclusions import BY_RULE
from study.artifacts.setting import Setting
from study.config.study import Study

SPREAD_LIMIT = 0.10
"""pyperf flags a standard deviation of 10% of the mean."""
PROCESS_MINIMUM = 3
BUSY_LIMIT = 25
"""Percent of the whole machine: a quarter of two cores is a process that never rests on half of one."""
GPU_BUSY_LIMIT = 10
"""Percent: an idle GPU shows 0."""
WAITING_LIMIT = 0.5


def warnings_of(study: Study, frame: pd.DataFrame, y: str, x: str | None) -> list[Caveat]:
    """Return every caveat of a table of timings with its reasons, whose ``y`` is analysed along the factor ``x``."""
    every, frame = frame, frame[frame["excluded"].isna() | frame["excluded"].isin(BY_RULE)]
    done = frame[(frame["outcome"] == "ok") & frame[y].notna()]
    usable = counted(done)
    return [
        *_outcomes(frame),
        *_refused(every),
        *_disturbed(every),
        *_broken(every),
        *_replicates(study),
        *_sessions(frame),
        *_environment(study, frame),
        *_circumstances(study, usable),
        *_machine(usable),
        *_apart(study, usable, x),
        *_noise(study, usable, y),
        *_work(usable),
        *_batches(usable),
        *_waiting(usable),
        *_decoding(study, usable),
        *_steps(usable),
        *_ceilings(usable),
    ]


def learning_caveats(groups: Sequence[GroupFit], margin: float) -> Iterator[Caveat]:
    """Yield the settings that missed their target, and those that have not learned."""
    missed = [
        findings.Missed(setting=_setting(group, level, groups), missed=one.missed, runs=one.runs)
        for group in groups
        for level, one in group.censored.items()
    ]
    if missed:
        yield findings.Censored(missed=missed)
    for group in groups:
        best = max((level.accuracy for level in group.learning.values() if level.accuracy is not None), default=0.0)
        for reason in ("at_chance", "below_best", "unclear"):
            mine = {name: level for name, level in group.learning.items() if level.reason == reason}
            if mine:
                yield findings.NotLearned(
                    reason=reason,
                    accuracies=[
                        OfSetting(setting=_setting(group, name, groups), value=level.accuracy or 0.0)
                        for name, level in mine.items()
                    ],
                    beside=best if reason == "below_best" else group.chance,
                    margin=margin,
                    few_runs=any(level.few_runs for level in mine.values()),
                )


def _setting(group: GroupFit, level: Hashable, groups: Sequence[GroupFit]) -> Setting:
    own = group.levels[str(level)]
    return own.within(group.setting) if len(groups) > 1 else own


def _outcomes(frame: pd.DataFrame) -> Iterator[Caveat]:
    failed = frame[~frame["outcome"].isin(["ok", "refused"])]
    for (outcome, message), rows in failed.groupby(["outcome", "message"], dropna=False, sort=False):
        yield findings.Unsuccessful(
            outcome=str(outcome), message=message if isinstance(message, str) else None, runs=rows["run"].tolist()
        )


def _refused(frame: pd.DataFrame) -> Iterator[Caveat]:
    """Yield the files that do not fit, by the reason: records of planned runs, and samples of any."""
    files = frame["run"].astype(str) + "." + frame["key"].astype(str)
    for reason, names in files[frame["outcome"] == "refused"].groupby(frame["message"], sort=False):
        yield findings.RefusedRecords(files=[f"{name}.json" for name in names], reason=str(reason))
    for reason, names in files.groupby(frame["samples_refused"], sort=False):
        yield findings.RefusedSamples(files=[f"{name}.parquet" for name in dict.fromkeys(names)], reason=str(reason))


def _disturbed(frame: pd.DataFrame) -> Iterator[Caveat]:
    """Yield the runs that others disturbed, from the records that count and those that were excluded."""
    marked = frame[frame["disturbed"].notna() & (frame["excluded"] != "broken block")]
    if len(marked):
        kinds = pd.Series([kind for text in marked["disturbed"] for kind in str(text).split("; ")])
        again = marked[marked["excluded"] == "disturbed"]
        yield findings.DisturbedRuns(
            kinds={str(kind): int(count) for kind, count in kinds.value_counts().sort_index().items()},
            runs=list(dict.fromkeys(marked["run"])),
            measured_again=int(again["run"].nunique()),
            disturbed_again=marked.loc[
                (marked["excluded"] != "disturbed") & marked["run"].isin(again["run"]), "run"
            ].tolist(),
        )


def _broken(frame: pd.DataFrame) -> Iterator[Caveat]:
    broken = frame[frame["excluded"] == "broken block"]
    if len(broken):
        yield findings.BrokenBlocks(blocks=sorted({int(block) for block in broken["block"]}), records=len(broken))


def _replicates(study: Study) -> Iterator[Caveat]:
    if study.replicates < PROCESS_MINIMUM:
        yield findings.FewReplicates(replicates=study.replicates)


def _sessions(frame: pd.DataFrame) -> Iterator[Caveat]:
    if (machines := frame["node"].dropna().nunique()) > 1:
        yield findings.SeveralMachines(machines=machines)
    elif (starts := frame["session"].nunique()) > 1:
        yield findings.SeveralStarts(starts=starts)


def _environment(study: Study, frame: pd.DataFrame) -> Iterator[Caveat]:
    """Yield what differed around the runs: software, weights, images, other processes, clocks, machines.

    What a factor of the study is meant to change is no caveat.
    """
    if "image" not in study.factors:
        yield from _software(frame)
        yield from _images(frame)
    yield from _weights(frame)
    yield from _trained_weights(frame)
    yield from _shared_gpu(frame)
    yield from _busy_machine(frame)
    yield from _throttled(frame)
    if "machine" not in study.factors:
        yield from _device_names(frame)


def _software(frame: pd.DataFrame) -> Iterator[Caveat]:
    if len(values := _distinct(frame, "software")) > 1:
        yield findings.MixedSoftware(software=values)


def _weights(frame: pd.DataFrame) -> Iterator[Caveat]:
    if len(values := _distinct(frame, "weights")) > 1:
        yield findings.MixedWeights(weights=values)


def _trained_weights(frame: pd.DataFrame) -> Iterator[Caveat]:
    """Yield the devices on which the same training did not give the same weights."""
    for device, values in _by_device(frame, "trained_sha256"):
        if len(values) > 1:
            yield findings.UnrepeatedTraining(device=device, weights=len(values))


def _images(frame: pd.DataFrame) -> Iterator[Caveat]:
    for device, values in _by_device(frame, "image_id"):
        if len(values) > 1:
            short = sorted({image.removeprefix("sha256:")[:12] for image in values})
            yield findings.MixedImages(device=device, images=short)


def _shared_gpu(frame: pd.DataFrame) -> Iterator[Caveat]:
    """Yield the runs that began while others had processes on the GPU, or kept it busy."""
    shared = (frame["other_device_processes"] > 0) | (frame["device_percent_before"] >= GPU_BUSY_LIMIT)
    if shared.any():
        yield findings.SharedGpu(runs=int(shared.sum()))


def _busy_machine(frame: pd.DataFrame) -> Iterator[Caveat]:
    if busy := int((frame["cpu_percent_before"] >= BUSY_LIMIT).sum()):
        yield findings.BusyMachine(percent=BUSY_LIMIT, runs=busy)


def _throttled(frame: pd.DataFrame) -> Iterator[Caveat]:
    if len(held := frame["throttle_reasons"].dropna()):
        reasons = sorted({reason for text in held for reason in str(text).split("; ")})
        yield findings.Throttled(runs=len(held), reasons=reasons)


def _device_names(frame: pd.DataFrame) -> Iterator[Caveat]:
    for device, values in _by_device(frame, "device_name"):
        if len(values) > 1:
            yield findings.MixedMachines(device=device, names=values)


def _distinct(frame: pd.DataFrame, column: str) -> list[str]:
    """Return the values of a column of text, sorted, each once."""
    return sorted(set(frame[column].dropna()))


def _by_device(frame: pd.DataFrame, column: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each device with the distinct values of a column of text among its runs."""
    for device, rows in frame[["device", column]].dropna().groupby("device"):
        yield str(device), _distinct(rows, column)


def _circumstances(study: Study, usable: pd.DataFrame) -> Iterator[Caveat]:
    """Yield where settings on one device had different numbers of threads or workers that no factor sets."""
    kinds: tuple[Literal["threads", "workers"], ...] = ("threads", "workers")
    for what in kinds:
        column, own = CIRCUMSTANCES[what]
        if set(own) & set(study.factors):
            continue
        for device, rows in usable.dropna(subset=[column]).groupby("device", sort=False):
            if rows[column].nunique() > 1:
                factor, counts = _told_apart(study, rows, column)
                yield findings.UnequalCircumstances(what=what, device=str(device), factor=factor, counts=counts)


def _told_apart(study: Study, rows: pd.DataFrame, column: str) -> tuple[str | None, dict[str, int]]:
    """Return the factor whose levels have one value each, with these; without one the smallest and the largest."""
    for key in study.compared:
        values = rows.groupby(key, sort=False)[column].agg(["min", "max"])
        if (values["min"] == values["max"]).all():
            return key, {str(level): int(value) for level, value in values["min"].items()}
    return None, {"fewest": int(rows[column].min()), "most": int(rows[column].max())}


def _machine(usable: pd.DataFrame) -> Iterator[Caveat]:
    """Yield the devices whose reference workload changed while the study was measured."""
    for column in REFERENCE_COLUMNS:
        for device, rows in usable[["device", column]].dropna().groupby("device", sort=False):
            low, high = float(rows[column].min()), float(rows[column].max())
            if high >= CHANGE_LIMIT * low:
                yield findings.MachineChanged(
                    device=str(device),
                    host=column == "host_reference_seconds",
                    fastest_seconds=low,
                    slowest_seconds=high,
                )


def _apart(study: Study, usable: pd.DataFrame, x: str | None) -> Iterator[Caveat]:
    """Yield the sets of levels that share no block: a change of the machine between them counts as theirs."""
    if x is None or usable.empty:
        return
    told = []
    keys = [key for key in study.compared if key != x]
    for part in [part for _, part in usable.groupby(keys, sort=False)] if keys else [usable]:
        blocks = part["session"].astype(int).astype(str) + "." + part["block"].astype(int).astype(str)
        sets = [[str(level) for level in levels] for levels in separate_sets(part[x].tolist(), blocks.tolist())]
        if len(sets) > 1 and sets not in told:
            told.append(sets)
            yield findings.SeparateStarts(factor=x, sets=sets)


def exclusion_caveats(groups: Sequence[GroupFit], y: str) -> Iterator[Caveat]:
    """Yield the runs that succeeded and that a rule excludes, beside the mean of their setting."""
    found, succeeded = [], 0
    for group in groups:
        done = group.part[(group.part["outcome"] == "ok") & group.part[y].notna()]
        left = done[done["excluded"].isin(BY_RULE)]
        succeeded += len(counted(done)) + len(left)
        peers = dict(list(group.clean.groupby("level", sort=False))) if len(left) else {}
        found += [
            _excluded_run(_setting(group, run["level"], groups), run, peers.get(run["level"]), group, y)
            for _, run in left.iterrows()
        ]
    if found:
        yield findings.ExcludedRuns(runs=found, of=succeeded)


def _excluded_run(
    setting: Setting, run: "pd.Series[Any]", peers: pd.DataFrame | None, group: GroupFit, y: str
) -> SetAsideRun:
    """Return a run beside its peers that count; its warm-up where that explains half of the distance."""
    own = usual = None
    mean = group.times.get(str(run["level"]))
    if peers is not None:
        warm_up, peers_warm_up = run["warm_up_extra_seconds"], peers["warm_up_extra_seconds"].median()
        if warm_up - peers_warm_up >= 0.5 * (run["fit_seconds"] - peers["fit_seconds"].median()) > 0:
            own, usual = float(warm_up), float(peers_warm_up)
    return SetAsideRun(
        run=str(run["run"]),
        setting=setting,
        reason=str(run["excluded"]),
        seconds=float(run[y]),
        mean_seconds=mean.value if mean else None,
        warm_up_seconds=own,
        usual_warm_up_seconds=usual,
    )


def _noise(study: Study, usable: pd.DataFrame, y: str) -> Iterator[Caveat]:
    """Yield the settings whose runs spread widely."""
    spreads, keys = [], study.compared or ["device"]
    for _, rows in usable.groupby(keys, sort=False):
        times = rows[y]
        if len(times) >= 2 and times.std() >= SPREAD_LIMIT * times.mean():
            (setting,) = row_settings(study, rows.head(1), keys)
            spreads.append(OfSetting(setting=setting, value=float(times.std() / times.mean())))
    if spreads:
        yield findings.WideSpread(limit=SPREAD_LIMIT, spreads=spreads)


def _work(usable: pd.DataFrame) -> Iterator[Caveat]:
    """Yield that settings train on different numbers of images, unless a target accuracy decides these numbers."""
    usable = usable[usable["reached_target"].isna()]
    images = usable["images_processed"]
    if images.nunique() > 1:
        of_an_epoch = usable["images_per_epoch"]
        found: dict[Literal["epochs", "data", "partial_batch"], bool] = {
            "epochs": (images / of_an_epoch).round(6).nunique() > 1,
            "data": usable["train_images"].nunique() > 1,
            "partial_batch": bool((of_an_epoch.groupby(usable["train_images"]).nunique() > 1).any()),
        }
        yield findings.UnequalWork(
            least_images=int(images.min()),
            most_images=int(images.max()),
            causes=[cause for cause, differs in found.items() if differs],
        )


def _batches(usable: pd.DataFrame) -> Iterator[Caveat]:
    """Yield the batch sizes that leave too few steps: a batch that holds all images, or no step after the warm-up."""
    whole = usable[usable["training.batch_size"] >= usable["train_images"]]
    for size, rows in whole.groupby("training.batch_size", sort=True):
        yield findings.WholeBatch(batch_size=int(str(size)), images=int(rows["train_images"].iloc[0]))
    # Inference takes no training steps.
    without = usable[usable["step_seconds"].isna() & usable["steps"].notna()]
    if len(without):
        yield findings.NoSteadyStep(batch_sizes=[int(size) for size in sorted(set(without["training.batch_size"]))])


def _waiting(usable: pd.DataFrame) -> Iterator[Caveat]:
    if "loader.kind" in usable:
        usable = usable[usable["loader.kind"] != "alone"]  # trains nothing, and waits for nothing else
    for device, rows in usable.groupby("device", sort=False):
        shares = rows.groupby("training.batch_size")["data_wait_share"].median()
        if len(waiting := shares[shares >= WAITING_LIMIT]):
            yield findings.WaitsForData(device=str(device), batch_sizes=[int(size) for size in waiting.index.tolist()])


def _decoding(study: Study, usable: pd.DataFrame) -> Iterator[Caveat]:
    """Yield that some settings are compared without the decoding of their images."""
    if "loader.kind" not in study.factors:
        return
    kinds = [str(kind) for kind in study.factors["loader.kind"] if kind in set(usable["loader.kind"])]
    others = [kind for kind in kinds if kind not in ("device", "alone")]
    if "device" in kinds and others:
        yield findings.DecodedBefore(others=others)


def _steps(usable: pd.DataFrame) -> Iterator[Caveat]:
    """Yield the runs that never became steady, and those with steps far longer than their median step."""
    restless = usable[usable["settled"].astype(str) == "False"]
    if len(restless):
        yield findings.NeverSteady(runs=restless["run"].tolist())
    slow = usable[usable["extreme_steps"] > 0]
    if len(slow):
        yield findings.SlowSteps(steps=int(slow["extreme_steps"].sum()), runs=slow["run"].tolist())


def _ceilings(usable: pd.DataFrame) -> Iterator[Caveat]:
    """Yield the runs above the measured ceiling of the device: it was slower when that was measured."""
    if len(above := usable[usable["ceiling_share"] > 1]):
        yield findings.AboveCeiling(runs=above["run"].tolist(), share=float(above["ceiling_share"].max()))
