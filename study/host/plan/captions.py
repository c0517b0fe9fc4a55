"""What Snakemake's own report says of a figure: the title and the caption that the step ``figures`` listed."""

import json
import re
from pathlib import Path

from study.artifacts.layout import Results


def titles(study: str, results: Path) -> dict[str, str]:
    """Return the title of each figure of a study that is there, by its name."""
    return {name: figure["title"] for name, figure in _listed(study, results).items()}


def captions(study: str, results: Path) -> dict[str, str]:
    """Return the caption of each figure of a study that is there, by its name, as reStructuredText."""
    return {name: as_rst(figure["caption"]) for name, figure in _listed(study, results).items()}


def as_rst(text: str) -> str:
    """Return one line of reStructuredText that shows ``text`` as it is."""
    return re.sub(r"([^\w\s])", r"\\\1", " ".join(text.split()))


def _listed(study: str, results: Path) -> dict[str, dict[str, str]]:
    try:
        listed = json.loads((Results(results).figures(study) / "index.json").read_text(encoding="utf-8"))
        return {figure["name"]: {key: str(figure[key]) for key in ("title", "caption")} for figure in listed}
    except (OSError, ValueError, KeyError, TypeError):  # the figures are still to be made, or to be made again
        return {}
