"""What a reader must know before believing the numbers, as sentences beside them."""

from typing import Any

import pandas as pd

from study.analysis.stats.log_model import separate_sets
from study.analysis.stats.machine_change import CHANGE_LIMIT, YARDSTICKS
from study.analysis.words import device_words, listed, short_key
from study.config.study import Study

SPREAD_LIMIT = 0.10
"""pyperf flags a standard deviation of 10% of the mean."""
EXTREME_LIMIT = 0.50
"""pyperf flags an extreme 50% from the median."""
PROCESS_MINIMUM = 3
BUSY_LIMIT = 25
"""Percent of the whole machine: a quarter of two cores is a process that never rests on half of one."""
GPU_BUSY_LIMIT = 10
"""Percent: an idle GPU shows 0."""
WAITING_LIMIT = 0.5


def warnings_of(study: Study, frame: pd.DataFrame, y: str, x: str | None) -> list[str]:
    """Every warning that the table of timings gives rise to."""
    found = [*_outcomes(frame), *_replicates(study), *_sessions(frame), *_environment(frame)]
    if y in frame:
        usable = frame[(frame["outcome"] == "ok") & frame[y].notna()]
        found += [
            *_machine(usable),
            *_apart(study, usable, x),
            *_noise(study, usable, y),
            *_work(usable, x),
            *_batches(usable),
            *_waiting(usable),
            *_steps(usable),
            *_ceilings(usable),
        ]
    return found


def _outcomes(frame: pd.DataFrame) -> list[str]:
    found = []
    for (outcome, message), rows in frame[frame["outcome"] != "ok"].groupby(
        ["outcome", "message"], dropna=False, sort=False
    ):
        name = str(outcome).replace("_", " ")
        found.append(f"{name[0].upper()}{name[1:]}: {_runs(rows)} ({message}).")
    return found


def _replicates(study: Study) -> list[str]:
    if study.replicates >= PROCESS_MINIMUM:
        return []
    return [f"{study.replicates} run(s) a setting: three are the least from which an interval is worth reading."]


def _sessions(frame: pd.DataFrame) -> list[str]:
    sessions = frame["session"].dropna().nunique() if "session" in frame else 0
    if sessions < 2:
        return []
    return [f"The runs come from {sessions} starts of the pipeline; the machine may have changed in between."]


def _environment(frame: pd.DataFrame) -> list[str]:
    found = []
    for column, name in (("software", "software"), ("weights", "starting weights")):
        values = sorted(set(frame[column].dropna())) if column in frame else []
        if len(values) > 1:
            found.append(f"The runs used different {name}: {'; '.join(values)}.")
    if "trained_sha256" in frame:
        for device, rows in frame.dropna(subset=["trained_sha256"]).groupby("device"):
            if (kinds := rows["trained_sha256"].nunique()) > 1:
                where = device_words(str(device), article=True)
                found.append(
                    f"Training did not repeat itself on {where}: its runs measured {kinds} different sets of weights, "
                    "so that a difference in accuracy may be theirs."
                )
    if "image" in frame:
        for device, rows in frame.dropna(subset=["image"]).groupby("device"):
            if rows["image"].nunique() > 1:
                images = ", ".join(sorted({str(image).removeprefix("sha256:")[:12] for image in rows["image"]}))
                found.append(f"The runs on {device_words(str(device), article=True)} used different images: {images}.")
    if "other_device_processes" in frame:
        shared = frame["other_device_processes"] > 0
        if "device_percent_before" in frame:
            shared |= frame["device_percent_before"] >= GPU_BUSY_LIMIT
        if shared.any():
            found.append(f"Other processes computed on the GPU when {int(shared.sum())} run(s) began.")
    if "cpu_percent_before" in frame and (busy := int((frame["cpu_percent_before"] >= BUSY_LIMIT).sum())):
        found.append(
            f"The machine was busy with other work ({BUSY_LIMIT}% of its CPUs or more) when {busy} run(s) began."
        )
    if "throttle_reasons" in frame and (held := frame["throttle_reasons"].dropna()).any():
        reasons = sorted({reason for text in held for reason in str(text).split("; ")})
        found.append(f"The GPU's clock was held down in {len(held)} run(s): {listed(reasons)}.")
    if "device_name" in frame:
        for device, rows in frame.dropna(subset=["device_name"]).groupby("device"):
            if rows["device_name"].nunique() > 1:
                found.append(
                    f"The runs on {device} come from different machines: {'; '.join(sorted(set(rows['device_name'])))}."
                )
    return found


def _machine(frame: pd.DataFrame) -> list[str]:
    """That the machine changed while the study was measured, by the yardsticks of each device."""
    found = []
    for column in YARDSTICKS:
        if column not in frame:
            continue
        for device, rows in frame.dropna(subset=[column]).groupby("device", sort=False):
            low, high = rows[column].min(), rows[column].max()
            if high < CHANGE_LIMIT * low:
                continue
            where = device_words(str(device), article=True)
            if column == "host_yardstick_seconds":
                where = f"the CPUs beside {where}"
            found.append(
                f"The machine itself changed by {high / low:.1f}x during this study: the same reference workload on "
                f"{where} took {1000 * low:.3g} to {1000 * high:.3g} ms. Where the runs suffice, the tables show times "
                "with and without it."
            )
    return found


def _noise(study: Study, usable: pd.DataFrame, y: str) -> list[str]:
    keys = study.compared or ["device"]
    wide, extreme = [], []
    for level, rows in usable.groupby(keys, sort=False):
        times = rows[y]
        name = _label(level)
        if len(times) >= 2 and times.std() >= SPREAD_LIMIT * times.mean():
            wide.append(f"{name} ({times.std() / times.mean():.0%})")
        far = abs(times - times.median()) >= EXTREME_LIMIT * times.median()
        if len(times) >= 3 and far.any():
            extreme.append(name + _why(usable, rows, rows[far]))
    found = []
    if wide:
        found.append(f"The standard deviation between runs is 10% of the mean or more: {'; '.join(wide)}.")
    if extreme:
        found.append(f"A run lies 50% or more from the median: {'; '.join(extreme)}.")
    return found


def _why(usable: pd.DataFrame, rows: pd.DataFrame, far: pd.DataFrame) -> str:
    """What sets a far run apart: a warm-up longer than its peers' by half its distance, its place in the session."""
    told = []
    peers = rows.drop(far.index)
    if len(far) == 1 and "warm_up_extra_seconds" in rows and len(peers):
        own, usual = far["warm_up_extra_seconds"].iloc[0], peers["warm_up_extra_seconds"].median()
        if own - usual >= 0.5 * (far["fit_seconds"].iloc[0] - peers["fit_seconds"].median()) > 0:
            told.append(f"its warm-up took {own:.3g} s, the others' {usual:.3g} s")
    if {"session", "started"} <= set(usable):
        first = usable.sort_values("started", kind="stable").groupby("session")["run"].first()
        if far["run"].isin(first).all():
            told.append("the first run of its start")
    return f" ({'; '.join(told)})" if told else ""


def _label(level: Any) -> str:
    return ", ".join(map(str, level)) if isinstance(level, tuple) else str(level)


def _work(usable: pd.DataFrame, x: str | None) -> list[str]:
    if "images_processed" not in usable or usable["images_processed"].nunique() < 2:
        return []
    low, high = int(usable["images_processed"].min()), int(usable["images_processed"].max())
    what = f" along {short_key(x)}" if x else ""
    return [
        f"The settings do different amounts of work{what}: {low} to {high} images in the whole schedule, "
        "for the last partial batch is dropped or kept."
    ]


def _batches(usable: pd.DataFrame) -> list[str]:
    found = []
    if "train_images" in usable:
        whole = usable[usable["training.batch_size"] >= usable["train_images"]]
        for size in sorted(set(whole["training.batch_size"])):
            images = int(whole[whole["training.batch_size"] == size]["train_images"].iloc[0])
            found.append(f"Batch size {size}: one batch holds the whole training set of {images} images.")
    without = usable[usable["step_seconds"].isna() & usable["steps"].notna()]
    if len(without):
        sizes = sorted(set(without["training.batch_size"]))
        found.append(f"Batch size {listed([str(size) for size in sizes])}: no step is left once warm-up is put aside.")
    return found


def _waiting(usable: pd.DataFrame) -> list[str]:
    if "data_wait_share" not in usable:
        return []
    if "loader.kind" in usable:
        usable = usable[usable["loader.kind"] != "alone"]  # trains nothing, and waits for nothing else
    found = []
    for device, rows in usable.groupby("device", sort=False):
        shares = rows.groupby("training.batch_size")["data_wait_share"].median()
        waiting = shares[shares >= WAITING_LIMIT]
        if len(waiting):
            sizes = listed([str(size) for size in waiting.index])
            found.append(
                f"On {device_words(str(device), article=True)} training waits for data at least half of the time "
                f"at batch size {sizes}: these times are the loader's more than the device's."
            )
    return found


def _ceilings(usable: pd.DataFrame) -> list[str]:
    """Runs above what the device could do: the ceilings were measured when it could do less."""
    if "ceiling_share" not in usable or not (above := usable[usable["ceiling_share"] > 1]).size:
        return []
    return [
        f"{_runs(above)} computed faster than the measured matrix product, by up to "
        f"{above['ceiling_share'].max():.1f}x: the machine was slower when that was measured, and no share of it holds."
    ]


def _steps(usable: pd.DataFrame) -> list[str]:
    """Runs that never became steady, and steps that took far longer than the others of their run."""
    found = []
    if "settled" in usable:
        restless = usable[usable["settled"].astype(str) == "False"]
        if len(restless):
            found.append(f"{_runs(restless)} never became steady: the steps' time still changed at the end.")
    if "extreme_steps" in usable:
        extreme = usable[usable["extreme_steps"] > 0]
        if len(extreme):
            found.append(
                f"Some steps took 50% longer than the median step of their run, or more: "
                f"{int(extreme['extreme_steps'].sum())} step(s) in {_runs(extreme)}."
            )
    return found


def _runs(rows: pd.DataFrame) -> str:
    return listed(rows["run"].tolist()) if len(rows) <= 4 else f"{len(rows)} runs"


def _apart(study: Study, usable: pd.DataFrame, x: str | None) -> list[str]:
    """Levels that share no block with the others: the machine's change counts as the level's."""
    found = []
    keys = [key for key in study.compared if key != x]
    groups = [part for _, part in usable.groupby(keys, sort=False)] if keys and x else [usable]
    for part in groups:
        if x is None or part.empty:
            continue
        blocks = part["session"].astype(int).astype(str) + "." + part["block"].astype(int).astype(str)
        sets = separate_sets(part[x].tolist(), blocks.tolist())
        if len(sets) > 1:
            apart = "; ".join(listed([str(level) for level in levels]) for levels, _ in sets)
            found.append(
                f"These sets of {short_key(x)} were measured in starts of their own ({apart}): a difference "
                "between the sets may be the machine's. To measure them together, move their records aside with "
                "`python -m study retry --outcome ok`."
            )
    return list(dict.fromkeys(found))
