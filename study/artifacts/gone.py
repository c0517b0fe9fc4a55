"""Keys that plans and records of before hold and no model has any more: they are dropped where a file is read.

The files stay as they are, and a record's checksum is that of all that it holds.
"""

import json
from typing import Any

GONE: dict[str, str] = {}
"""Each key that went and that a committed bundle holds, such as `measurement.flops`, and why it went. The keys above it
stand before it, as far as they tell it apart."""


def without_gone(text: str) -> str:
    """Return the JSON of a file without the keys that went; the text itself if it holds none, or is no JSON."""
    if not any(f'{key.rpartition(".")[2]}"' in text for key in GONE):
        return text
    try:
        return json.dumps(drop_gone(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def drop_gone(values: Any, above: str = "") -> Any:
    """Return the values of a plan or a record without the keys that went, at any depth. ``above`` leads to them."""
    if isinstance(values, list):
        return [drop_gone(inner, above) for inner in values]
    if not isinstance(values, dict):
        return values
    return {key: drop_gone(inner, f"{above}.{key}") for key, inner in values.items() if not _went(f"{above}.{key}")}


def _went(path: str) -> bool:
    return any(path.endswith(f".{key}") for key in GONE)
