"""An image search as a source of images. The modules that search and download are imported when they are used."""

from collections import Counter
from pathlib import Path

from study.artifacts.prepared import Manifest
from study.config.sections import Dataset
from study.data.preflight import images_a_class, train_images
from study.data.search.earlier import given_manifest, pictures_of
from study.data.sources import Outlook, Source


class Search(Source):
    """Pictures that a search finds for each term, or those of an earlier search.

    No code decides the manifest: an edit of this project is no reason to repeat a search, which might find other
    pictures.
    """

    downloads = True

    def keys(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the keys of the pictures and the split. A manifest lists its pictures, and needs no term."""
        split = ("max_size", "valid_fraction", "seed")
        return split if dataset.manifest else (*split, "terms", "images")

    def look(self, dataset: Dataset) -> Outlook:
        """Return the numbers that the keys ask for, or those of a manifest, with its list of pictures.

        The list holds name, URL, checksum as downloaded and checksum as stored of every picture.
        """
        if not dataset.manifest:
            counts = images_a_class(dataset.images, len(dataset.terms or ()))
            return Outlook(len(counts), train_images(counts, dataset.valid_fraction))
        pictures = pictures_of(given_manifest(dataset))
        by_class = Counter(item.label for item, _ in pictures)
        files = [[item.name, origin.url, origin.sha256, item.sha256] for item, origin in pictures]
        return Outlook(len(by_class), train_images(by_class.values(), dataset.valid_fraction), files)

    def make(self, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        """Search, download, verify and shrink the pictures, or bring those of the manifest again."""
        from study.data.search import fetch

        return fetch.fetch(dataset, folder, results)
