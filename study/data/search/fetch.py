"""Your own data as in the fastai course: search, download, verify, shrink; or the pictures of an earlier search."""

import os
import shutil
import sys
from collections import Counter
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.prepared import LeftOut, Manifest, Origin
from study.base.errors import StudyError, printable
from study.base.files import write_if_changed
from study.config.sections import Dataset
from study.data.preflight import images_a_class
from study.data.search.collect import BATCH, OFFLINE, Collector, Wanted
from study.data.search.earlier import given_manifest, pictures_of
from study.data.search.find import find
from study.data.search.picture import encoder
from study.data.search.store import Found, Store, Stored
from study.data.search.web import Bounds, Refused
from study.data.splits import assign_splits, item_of

TOTAL_SECONDS = 3600.0
SPARE = 1.5
"""Factor on the number of wanted pictures to search for: some of the found ones are gone, broken or duplicates."""
REMAINING = "remaining.json"


@dataclass(frozen=True)
class Chosen:
    """A picture of the dataset."""

    label: str
    origin: Origin
    stored: Stored

    @property
    def name(self) -> str:
        """File name from the content: it is the same on every machine, and so is the split."""
        return f"{self.label}/{self.stored.sha256[:16]}.jpg"


def fetch(
    dataset: Dataset, folder: Path, results: Path, bounds: Bounds = Bounds(), seconds: float = TOTAL_SECONDS
) -> Manifest:
    """Lay out the pictures of a search, or of ``dataset.manifest``, by class in ``folder``, and return their manifest.

    Raise :class:`StudyError` if too few are found, or if a listed picture is gone or has changed; in that case
    ``remaining.json`` lists the others.
    """
    store = Store(Results(results).searches, dataset.max_size)
    collector = Collector(store, replace(bounds, private_addresses=dataset.private_addresses), seconds)
    if dataset.manifest:
        return _listed(dataset, given_manifest(dataset), collector, folder, results)
    chosen, left_out = [], []
    seen: dict[str, str] = {}
    terms = dataset.terms or {}
    for (label, term), count in zip(terms.items(), images_a_class(dataset.images, len(terms)), strict=True):
        pictures, refused = _anew(label, term, count, collector, seen)
        chosen += pictures
        left_out += refused
    return _lay_out(dataset, chosen, left_out, store, folder)


def _anew(
    label: str, term: str, count: int, collector: Collector, seen: dict[str, str]
) -> tuple[list[Chosen], list[LeftOut]]:
    """Return the first ``count`` usable pictures that a search finds, and the refused ones.

    ``seen`` holds the checksums of the pictures so far, with their URLs.
    """
    store = collector.store
    known, broken_off = _addresses(term, count, store)
    _say(f"search: {label}: {len(known.urls)} addresses for {term!r}, {count} pictures wanted")
    chosen: list[Chosen] = []
    left_out: list[LeftOut] = []
    unreachable: set[str] = set()
    position = 0
    refused = dict(known.refused)
    while position < len(known.urls) and len(chosen) < count:
        batch = known.urls[position : position + min(BATCH, count - len(chosen))]
        position += len(batch)
        tried = [Wanted(url) for url in batch if url not in known.refused]
        brought = {item.url: found for item, found in zip(tried, collector.bring(tried), strict=True)}
        for url in batch:
            found = brought.get(url) or Refused(refused[url])
            if isinstance(found, Refused):
                left_out.append(LeftOut(name=url, reason=str(found)))
                if found.unreachable:
                    unreachable.add(url)
                else:
                    refused[url] = str(found)
            elif same := seen.get(found.sha256) or seen.get(found.stored_sha256):
                left_out.append(LeftOut(name=url, reason=f"it is the same picture as {same}"))
            else:
                seen |= {found.sha256: url, found.stored_sha256: url}
                origin = Origin(url=url, term=term, bytes=found.bytes, sha256=found.sha256)
                chosen.append(Chosen(label, origin, found))
    _say(f"search: {label}: {len(chosen)} pictures, {len(left_out)} left out")
    _check_enough(label, term, len(chosen), count, left_out, len(unreachable), broken_off)
    # Another split uses the same pictures: an unreachable URL is tried again, but last.
    urls = sorted(known.urls, key=lambda url: url in unreachable)
    store.remember(known.model_copy(update={"urls": urls, "refused": refused}))
    return chosen, left_out


def _addresses(term: str, count: int, store: Store) -> tuple[Found, str | None]:
    """Return URLs for a term, earlier ones first, and why there may be more, or None.

    This order keeps earlier pictures when more are wanted. A search that broke off is not remembered as complete: the
    next start asks again.
    """
    found, wanted = store.found(term), ceil(SPARE * count) + 10
    if found.asked >= wanted:
        return found, None
    answer = find(term, wanted, found.urls)
    urls = list(dict.fromkeys([*found.urls, *answer.urls]))
    if answer.trouble:
        _say(f"search: {term!r}: broke off at {len(urls)} of {wanted} addresses ({answer.trouble})")
    found = found.model_copy(update={"asked": found.asked if answer.trouble else wanted, "urls": urls})
    store.remember(found)
    return found, answer.trouble


def _check_enough(
    label: str,
    term: str,
    found: int,
    wanted: int,
    left_out: list[LeftOut],
    unreachable: int,
    broken_off: str | None,
) -> None:
    """Raise :class:`StudyError` if the network cut the search short or fewer than two pictures are usable.

    A search that merely finds too little gives a smaller dataset.
    """
    tried = found + len(left_out)
    first = f", first {left_out[0].name} ({left_out[0].reason})" if left_out else ""
    if found < wanted and 2 * unreachable > tried:
        raise StudyError(
            f"dataset.terms.{label}: {found} of {wanted} pictures are available, because {unreachable} of {tried} "
            f"addresses do not answer{first}{OFFLINE}, or ask for fewer (dataset.images)"
        )
    if found < wanted and broken_off:
        raise StudyError(
            f"dataset.terms.{label}: {found} of {wanted} pictures are available, because the search for {term!r} "
            f"broke off ({broken_off}){OFFLINE}, or ask for fewer (dataset.images)"
        )
    if found < 2:
        raise StudyError(
            f"dataset.terms.{label}: {term!r} is not allowed: {found} of the {tried} pictures found can be used; "
            f"at least two are needed{first}"
        )
    if found < wanted:
        _say(f"search: {label}: found only {found} of the {wanted} wanted pictures")


def _listed(dataset: Dataset, given: Manifest, collector: Collector, folder: Path, results: Path) -> Manifest:
    """Return the manifest of all pictures of an earlier search, or raise an error that says which are gone."""
    chosen, gone = _again(given, collector)
    manifest = _lay_out(dataset, chosen, [*given.left_out, *(item for _, item in gone)], collector.store, folder)
    if not gone:
        (folder / REMAINING).unlink(missing_ok=True)
        return manifest
    refused = f"dataset.manifest: {Path(str(dataset.manifest)).name!r}: "
    first = f"first {gone[0][1].name} ({gone[0][1].reason})"
    if not chosen and not collector.answered:
        raise StudyError(f"{refused}none of its {len(gone)} addresses answers, {first}{OFFLINE}")
    for label, item in gone:
        _say(f"search: {label}: gone: {item.name}: {item.reason}")
    write_if_changed(folder / REMAINING, manifest.model_dump_json(indent=1))
    of, lost = Counter(item.label for item in given.items), Counter(label for label, _ in gone)
    counts = ", ".join(f"{label} {count} of {of[label]}" for label, count in sorted(lost.items()))
    raise StudyError(
        f"{refused}{len(gone)} of {len(given.items)} pictures are gone or have changed ({counts}), {first}; "
        f"{results.name}/data/{folder.name}/{REMAINING} lists each of them under left_out, and the others: to go on "
        "with those alone, name that file as dataset.manifest"
    )


def _again(given: Manifest, collector: Collector) -> tuple[list[Chosen], list[tuple[str, LeftOut]]]:
    """Return the pictures that a manifest lists, and those that are gone or have changed, with their classes."""
    wanted = pictures_of(given)
    chosen: list[Chosen] = []
    gone: list[tuple[str, LeftOut]] = []
    other_bytes = 0
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        brought = collector.bring([Wanted(origin.url, origin.sha256) for _, origin in batch])
        for (item, origin), found in zip(batch, brought, strict=True):
            if isinstance(found, Refused):
                gone.append((str(item.label), LeftOut(name=origin.url, reason=str(found))))
            else:
                chosen.append(Chosen(str(item.label), origin, found))
                other_bytes += found.stored_sha256 != item.sha256
    if other_bytes:
        _say(
            f"search: {other_bytes} of {len(wanted)} pictures have the same download but other stored bytes: stored "
            f"by {encoder()} here, and by {given.encoder} in the manifest"
        )
    return chosen, gone


def _lay_out(dataset: Dataset, chosen: list[Chosen], left_out: list[LeftOut], store: Store, folder: Path) -> Manifest:
    """Lay the pictures out as files by class, which people can look at, and return their manifest."""
    pictures = {picture.name: picture for picture in chosen}
    names: dict[str, list[str]] = {}
    for name, picture in sorted(pictures.items()):
        names.setdefault(picture.label, []).append(name)
        _link(store.path(picture.stored), folder / name)
    splits = assign_splits(names, dataset.valid_fraction, dataset.seed)
    return Manifest(
        source="search",
        generated=False,
        seed=dataset.seed,
        valid_fraction=dataset.valid_fraction,
        max_size=dataset.max_size,
        encoder=encoder(),
        classes=sorted(names),
        train_images=sum(split == "train" for split in splits.values()),
        valid_images=sum(split == "valid" for split in splits.values()),
        items=[
            item_of(folder, name, picture.label, splits[name]).model_copy(update={"origin": picture.origin})
            for name, picture in sorted(pictures.items())
        ],
        left_out=left_out,
    )


def _link(source: Path, target: Path) -> None:
    """Give the same file a second name, or copy it if the file system has no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)
