"""Which of the two limits a run, the loader or the training: the same configuration with either alone, and both."""

import pandas as pd

from study.analysis.stats.log_model import LogModel, fit_log_model
from study.analysis.words import device_words, number, short_key
from study.config.study import Study

COMPETING = 0.5
"""Share of the smaller of the two by which both together exceed the larger one, where neither hides the other."""
ALONE, TRAINING, BOTH = "alone", "device", "workers"


def limits_of(study: Study, usable: pd.DataFrame) -> list[str]:
    """A sentence for each configuration that was run in all three ways; ``usable`` are the runs with their block."""
    if "loader.kind" not in study.factors or "train_seconds" not in usable or usable.empty:
        return []
    others = [key for key in study.compared if key != "loader.kind"]
    sentences = []
    for level, rows in usable.groupby(others, sort=False) if others else [((), usable)]:
        kinds = rows["loader.kind"].tolist()
        if {ALONE, TRAINING, BOTH} <= set(kinds):
            model = fit_log_model(rows["train_seconds"].tolist(), kinds, rows["session_block"].tolist())
            sentences.append(_sentence(_where(others, level), model))
    return sentences


def _where(keys: list[str], level: object) -> str:
    parts = level if isinstance(level, tuple) else (level,)
    words = [
        device_words(str(part), article=True) if key == "device" else f"{short_key(key)} {part}"
        for key, part in zip(keys, parts, strict=False)
    ]
    return f"On {', '.join(words)} the" if "device" in keys else f"With {', '.join(words)} the" if words else "The"


def _sentence(where: str, model: LogModel) -> str:
    loader, training, both = (model.mean(kind).value for kind in (ALONE, TRAINING, BOTH))
    text = (
        f"{where} loader alone takes {number(loader)} s, training on images that lie on the device {number(training)} "
        f"s, and both together {number(both)} s (validation apart): "
    )
    slower = ALONE if loader >= training else TRAINING
    added = model.ratio(BOTH, slower)
    if added.low is not None and added.low > 1 + COMPETING * min(loader, training) / max(loader, training):
        return f"{text}they hold each other up, on the same processors or by turns, and neither alone limits the run."
    ratio = model.ratio(ALONE, TRAINING)
    if ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
        return text + "which of the two limits the run cannot be told."
    if ratio.value > 1:
        return f"{text}the loader limits the run, and the training could go {number(loader / training)} times as fast."
    return f"{text}the training limits the run, and the loader could deliver {number(training / loader)} times as fast."
