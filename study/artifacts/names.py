"""Readable names of runs, safe as file names."""

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from study.base.errors import StudyError
from study.base.files import digest
from study.config.sections import short_name
from study.config.study import Study

SHORT = {
    "training.batch_size": "bs",
    "inference.batch_size": "bs",
    "loader.workers": "workers",
    "dataset.image_size": "px",
    "training.epochs": "epochs",
}


def label(factors: dict[str, Any], study: Study) -> str:
    """Return the label of a configuration, e.g. ``bs16-cpu``: the curve's factor is first, the device last."""
    first = study.curve.x if study.curve else None
    keys = sorted(factors, key=lambda key: (key != first, key == "device", list(factors).index(key)))
    return "-".join(_part(key, factors[key]) for key in keys) or "run"


def _part(key: str, level: Any) -> str:
    if isinstance(level, str) and key not in SHORT:
        return slug(short_name(level) if key == "model.name" else level)
    return SHORT.get(key, key.rsplit(".", 1)[-1].replace("_", "")) + slug(level)


def slug(level: Any) -> str:
    """Return the level as letters, digits, dots and underscores; a digest keeps two apart that lose letters."""
    text = str(level).lower() if isinstance(level, bool) else str(level)
    if isinstance(level, str) and os.sep in level:  # a path's base name: names of runs are shared
        return f"{slug(Path(level).name)[:24]}_{digest(text)[:4]}"
    safe = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")
    # A name that lost characters, such as a folder's, could equal another: a digest keeps them apart.
    return safe if safe == text or re.fullmatch(r"[\d.]+", text) else f"{safe[:24]}_{digest(text)[:4]}"


def unique(labels: list[str], factors: list[dict[str, Any]]) -> list[str]:
    """Return a unique label for each configuration. Raise :class:`StudyError` if two have the same levels.

    ``labels`` and ``factors`` hold one item for each configuration.
    """
    seen = Counter(frozenset(levels.items()) for levels in factors)
    for levels in factors:
        if seen[frozenset(levels.items())] > 1:
            raise StudyError(f"factors: {levels} occur together more than once: `single` always has one process")
    counts = Counter(labels)
    return [
        label if counts[label] == 1 else f"{label}-{digest(levels)[:4]}"
        for label, levels in zip(labels, factors, strict=True)
    ]
