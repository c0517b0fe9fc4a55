"""The command of a start, as it was given, to print it again with one change."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from study.base.strict import Strict

PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
"""A word that YAML reads as text without quotes."""
NO_TEXT = {"null", "true", "false", "yes", "no", "on", "off", "none"}


class Command(Strict):
    """What a start was called with, but for the names of its studies."""

    program: Literal["snakemake", "make"] = "snakemake"
    config: dict[str, Any] = Field({}, description="Keys of `config/config.yaml` that are not at their defaults.")

    def again(self, study: str, **changes: Any) -> str:
        """Return the command for one study; ``changes`` replace or add keys, overrides are added to those given.

        It can be typed in bash and in zsh.
        """
        overrides = {**self.config.get("overrides", {}), **changes.pop("overrides", {})}
        config = {**self.config, **changes} | ({"overrides": overrides} if overrides else {})
        config.pop("overrides", None) if not overrides else None
        words = [f"studies=[{study}]", *(f"{key}={flow(value)}" for key, value in config.items())]
        told = " ".join(map(shlex.quote, words))
        if self.program == "make" and not re.search(r'["$`\\]', told):
            return f'make study ARGS="--config {told}"'
        return f"snakemake --cores 1 --config {told}"


def flow(value: Any) -> str:
    """Return a value as YAML on one line, which Snakemake's ``--config`` reads."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in NO_TEXT:
        return value
    return json.dumps(value)
