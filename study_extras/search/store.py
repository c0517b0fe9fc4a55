"""The store of search results and downloads in one folder of the results: no verified picture is fetched twice."""

import hashlib
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from study.base.files import file_sha256, write_if_changed, write_whole
from study.base.strict import Strict
from study_extras.search.picture import encoder, shrink

Model = TypeVar("Model", bound=Strict)


class Stored(Strict):
    """One verified picture: its source, and the stored file."""

    url: str
    bytes: int = Field(description="Size of the download in bytes.")
    sha256: str = Field(description="Checksum of the download.")
    max_size: int
    stored_sha256: str = Field(description="Checksum of the stored, shrunk picture.")
    encoder: str

    @property
    def file(self) -> str:
        """File name of the picture in the store."""
        return f"{self.sha256[:32]}-{self.max_size}.jpg"


class Found(Strict):
    """The URLs that a search found for a term, and those that were refused."""

    term: str
    asked: int = Field(description="Number of URLs asked for; there may be fewer.")
    urls: list[str]
    refused: dict[str, str] = Field(
        {}, description="Reason for each URL that is permanently refused, and not tried again."
    )


class Store:
    """Pictures of one size by URL and by checksum. Each file appears whole or not at all."""

    def __init__(self, folder: Path, max_size: int) -> None:
        self.folder, self.max_size = folder, max_size
        self.by_url: dict[str, Stored] = {}
        self.by_sha256: dict[str, Stored] = {}
        for path in sorted((folder / "pictures").glob("*.json")):
            stored = _read(path, Stored)
            if stored and stored.max_size == max_size and self._is_sound(stored):
                self._enter(stored)

    def path(self, stored: Stored) -> Path:
        """Return the path of the picture."""
        return self.folder / "pictures" / stored.file

    def keep(self, url: str, content: bytes) -> Stored:
        """Verify, shrink and store a download, and return its entry.

        Raise :class:`StudyError` if it is not a picture.
        """
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 in self.by_sha256:
            stored = self.by_sha256[sha256].model_copy(update={"url": url})
        else:
            picture = shrink(content, self.max_size)
            stored = Stored(
                url=url,
                bytes=len(content),
                sha256=sha256,
                max_size=self.max_size,
                stored_sha256=hashlib.sha256(picture).hexdigest(),
                encoder=encoder(),
            )
            write_whole(self.path(stored), picture)
        write_if_changed(
            self.folder / "pictures" / f"{_name(url)}-{self.max_size}.json", stored.model_dump_json(indent=1)
        )
        self._enter(stored)
        return stored

    def found(self, term: str) -> Found:
        """Return the results for a term so far."""
        return _read(self._found(term), Found) or Found(term=term, asked=0, urls=[])

    def remember(self, found: Found) -> None:
        """Store the results of a search: another search would find different ones."""
        write_if_changed(self._found(found.term), found.model_dump_json(indent=1))

    def _found(self, term: str) -> Path:
        return self.folder / "found" / f"{_name(term)}.json"

    def _enter(self, stored: Stored) -> None:
        self.by_url[stored.url] = stored
        self.by_sha256[stored.sha256] = stored

    def _is_sound(self, stored: Stored) -> bool:
        path = self.path(stored)
        return path.is_file() and file_sha256(path) == stored.stored_sha256


def _name(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(path: Path, model: type[Model]) -> Model | None:
    """Return the content of a file, or None if it is absent or damaged."""
    try:
        return model.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
