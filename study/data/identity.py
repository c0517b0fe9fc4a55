"""What decides a dataset's manifest."""

from typing import Any

from study.base.files import code_sha256
from study.config.sections import Dataset


def dataset_identity(dataset: Dataset, listing: list[list[Any]] | None) -> dict[str, Any]:
    """Return all that decides a dataset's manifest: the keys that its source uses, and its drawing code or its files.

    ``listing`` holds [name, size, time] of every file that the user gave, or the items that a search's manifest lists.
    """
    source = dataset.source
    if source == "generated":
        keys: tuple[str, ...] = ("classes", "images", "valid_fraction", "seed")
        if not dataset.photographs:
            keys += ("channels", "image_size")
        code = code_sha256(["data/generated.py", "data/splits.py"])
        return {"source": source, "code": code} | {key: getattr(dataset, key) for key in keys}
    if source == "folder":
        return {
            "source": source,
            "valid_fraction": dataset.valid_fraction,
            "seed": dataset.seed,
            "files": listing,
            "code": code_sha256(["data/folder.py", "data/splits.py"]),
        }
    if source == "search":
        # No code: an edit of this project is no reason to repeat the search, which might find other pictures.
        asked = {"terms": list((dataset.terms or {}).items()), "images": dataset.images}
        return {"source": source, "max_size": dataset.max_size} | {
            "valid_fraction": dataset.valid_fraction,
            "seed": dataset.seed,
            **({"pictures": listing} if listing is not None else asked),
        }
    code = code_sha256(["data/torchvision_sets.py", "data/splits.py"])
    return {"source": source, "files": listing, "code": code}
