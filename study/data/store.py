"""What searches found and downloaded, kept in one folder of the results: nothing verified is fetched twice."""

import hashlib
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from study.config import Strict
from study.data.picture import encoder, shrink
from study.fingerprint import file_sha256
from study.plan import write_if_changed

Model = TypeVar("Model", bound=Strict)


class Stored(Strict):
    """One verified picture: where it came from, and what is kept of it."""

    url: str
    bytes: int = Field(description="Size of what was downloaded.")
    sha256: str = Field(description="Checksum of what was downloaded.")
    max_size: int
    stored_sha256: str = Field(description="Checksum of what is kept, which was shrunk.")
    encoder: str

    @property
    def file(self) -> str:
        """The picture's name in the store."""
        return f"{self.sha256[:32]}-{self.max_size}.jpg"


class Found(Strict):
    """What a search found for a term, and what became of it once enough of it was brought."""

    term: str
    asked: int = Field(description="How many URLs were asked for; there may be fewer.")
    urls: list[str]
    refused: dict[str, str] = Field({}, description="Why a URL was of no use, for good: it is not tried again.")


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
        """Where the picture lies."""
        return self.folder / "pictures" / stored.file

    def keep(self, url: str, content: bytes) -> Stored:
        """Verify, shrink and keep what was downloaded. Raises :class:`StudyError` where it is no picture."""
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
            _write(self.path(stored), picture)
        write_if_changed(
            self.folder / "pictures" / f"{_name(url)}-{self.max_size}.json", stored.model_dump_json(indent=1)
        )
        self._enter(stored)
        return stored

    def found(self, term: str) -> Found:
        """What was found for a term so far."""
        return _read(self._found(term), Found) or Found(term=term, asked=0, urls=[])

    def remember(self, found: Found) -> None:
        """Keep what was found: another search would find something else."""
        write_if_changed(self._found(found.term), found.model_dump_json(indent=1))

    def _found(self, term: str) -> Path:
        return self.folder / "found" / f"{_name(term)}.json"

    def _enter(self, stored: Stored) -> None:
        self.by_url[stored.url] = stored
        self.by_sha256[stored.sha256] = stored

    def _is_sound(self, stored: Stored) -> bool:
        path = self.path(stored)
        return path.is_file() and file_sha256(path) == stored.stored_sha256


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _read(path: Path, model: type[Model]) -> Model | None:
    """What a file holds; None where it is not there or was damaged."""
    try:
        return model.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
