"""What Snakemake's own report says of a figure: the title and the caption that the step ``figures`` listed."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True, repr=False)
class Figures:
    """The figures in the folder of a study, which are read when they are asked for: once they are there."""

    folder: Path

    def __repr__(self) -> str:  # Snakemake's report shows it beside each figure
        return f"{self.folder.name}/index.json"

    def title(self, name: str) -> str:
        """Return the title of a figure; its name, if none is listed."""
        return self._listed.get(name, {}).get("title", name)

    def caption(self, name: str) -> str:
        """Return the caption of a figure as one line of reStructuredText that shows it as it is."""
        return as_rst(self._listed.get(name, {}).get("caption", name))

    @cached_property
    def _listed(self) -> dict[str, dict[str, str]]:
        try:
            listed = json.loads((self.folder / "index.json").read_text(encoding="utf-8"))
            return {figure["name"]: {key: str(figure[key]) for key in ("title", "caption")} for figure in listed}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):  # still to be made, or to be made again
            return {}


def as_rst(text: str) -> str:
    """Return one line of reStructuredText that shows ``text`` as it is."""
    return re.sub(r"([^\w\s]|_)", r"\\\1", " ".join(text.split()))
