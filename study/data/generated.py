"""Images drawn from a seed, without a network: two classes of photographs, or small patterns of any
class count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from study.artifacts.prepared import Manifest
from study.config.sections import Dataset
from study.data.sources import DatasetInfo, Source
from study.data.splits import images_a_class, train_images

if TYPE_CHECKING:
    from study.data.decode import ImageSet


class Generated(Source):
    """Images that this project draws. The module that draws, with NumPy and Pillow, is imported
    when it is used."""

    code = ("data/generated.py", "data/drawing.py", "data/decode.py", "data/splits.py")

    def keys(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the keys of the drawing and the split. A photograph has a size of its own, a
        pattern the model's."""
        keys = super().keys(dataset)
        return keys if dataset.photographs else (*keys, "channels", "image_size")

    def inspect(self, dataset: Dataset) -> DatasetInfo:
        """Return the numbers that the keys ask for."""
        counts = images_a_class(dataset.images, dataset.classes)
        trained = train_images(counts, dataset.valid_fraction)
        return DatasetInfo(dataset.classes, trained, dataset.images - trained)

    def make(self, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        """Draw every image into ``folder``."""
        from study.data import drawing

        draw = drawing.draw_photographs if dataset.photographs else drawing.draw_patterns
        return draw(dataset, folder)

    def open(self, manifest: Manifest, dataset: Dataset, folder: Path, results: Path) -> ImageSet:
        """Return the photographs, or the patterns in their arrays."""
        from study.data.decode import opened_arrays

        if dataset.photographs:
            return super().open(manifest, dataset, folder, results)
        return opened_arrays(manifest, folder)
