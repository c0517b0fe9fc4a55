"""Your own data as in the fastai course: search, download, verify, shrink; or the pictures of an earlier search."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path

from filelock import FileLock

from study.base.errors import StudyError
from study.base.files import room_for, write_if_changed
from study.data.splits import images_a_class
from study_extras.search.collect import BATCH, OFFLINE, Collector, Wanted
from study_extras.search.find import find
from study_extras.search.manifest import LeftOut, Manifest, Picture, read_earlier
from study_extras.search.picture import encoder
from study_extras.search.store import Found, Store, Stored
from study_extras.search.web import Bounds, Refused

TOTAL_SECONDS = 3600.0
SPARE = 1.5
"""Factor on the number of wanted pictures to search for: some of the found ones are gone, broken or duplicates."""
STORE = ".search"
"""Folder of the store and the lock, in the folder that is filled. A study looks into no hidden folder."""
MANIFEST, REMAINING = "manifest.json", "remaining.json"
ONE_TIME = 946_684_800
"""Modification time of every picture, the year 2000: the same pictures are the same data, whenever they came."""
Say = Callable[[str], None]


def fill(
    terms: dict[str, str],
    images: int,
    max_size: int,
    folder: Path,
    bounds: Bounds,
    say: Say,
    seconds: float = TOTAL_SECONDS,
) -> Manifest:
    """Fill ``folder`` with up to ``images`` pictures of the classes in ``terms``, and return their manifest.

    Raise :class:`StudyError` if too few are found, or if the folder holds something else.
    """
    if images < 2 * len(terms):
        why = "each needs at least two"
        raise StudyError(key="--images", value=images, context=f"with {len(terms)} classes", why=why)
    with _at_work(folder):
        collector = Collector(Store(folder / STORE, max_size), bounds, seconds)
        pictures: list[Picture] = []
        left_out: list[LeftOut] = []
        seen: dict[str, str] = {}
        for (label, term), count in zip(terms.items(), images_a_class(images, len(terms)), strict=True):
            chosen, refused = _anew(label, term, count, collector, seen, say)
            pictures += chosen
            left_out += refused
        manifest = _manifest(max_size, pictures, left_out)
        _lay_out(manifest, collector.store, folder)
    return manifest


def fill_again(earlier: Path, folder: Path, bounds: Bounds, say: Say, seconds: float = TOTAL_SECONDS) -> Manifest:
    """Fill ``folder`` with the pictures that the manifest ``earlier`` lists, and return theirs.

    Raise :class:`StudyError` if a listed picture is gone or has changed; ``remaining.json`` then lists the others, and
    the folder's pictures are left as they are.
    """
    given = read_earlier(earlier)
    with _at_work(folder):
        collector = Collector(Store(folder / STORE, given.max_size), bounds, seconds)
        pictures, gone = _again(given, collector, say)
        manifest = _manifest(given.max_size, pictures, [*given.left_out, *(item for _, item in gone)])
        if gone:
            raise _incomplete(earlier.name, given, manifest, gone, collector, folder, say)
        (folder / REMAINING).unlink(missing_ok=True)
        _lay_out(manifest, collector.store, folder)
    return manifest


@contextmanager
def _at_work(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: a second search there goes on from what the first one brought.

    Raise :class:`StudyError` for a folder that no search has filled and that holds something.
    """
    if not _may_fill(folder):
        why = "it is there, and no search has filled it; name a new folder"
        raise StudyError(key="--output", value=str(folder), why=why)
    with room_for(folder):
        (folder / STORE).mkdir(parents=True, exist_ok=True)
        with FileLock(folder / STORE / "lock"):
            yield


def _may_fill(folder: Path) -> bool:
    """Whether a folder is absent, empty or a search's.

    Its store is the first thing that a search makes in it: so the look for the store comes after the look for anything
    at all, whatever another search makes between the two.
    """
    try:
        return not any(folder.iterdir()) or (folder / STORE).is_dir()
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        return False


def _anew(
    label: str, term: str, count: int, collector: Collector, seen: dict[str, str], say: Say
) -> tuple[list[Picture], list[LeftOut]]:
    """Return the first ``count`` usable pictures that a search finds, and the refused ones.

    ``seen`` holds the checksums of the pictures so far, with their URLs.
    """
    store = collector.store
    known, broken_off = _addresses(term, count, store, say)
    say(f"search: {label}: {len(known.urls)} addresses for {term!r}, {count} pictures wanted")
    chosen: list[Picture] = []
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
                left_out.append(LeftOut(url=url, reason=str(found)))
                if found.unreachable:
                    unreachable.add(url)
                else:
                    refused[url] = str(found)
            elif same := seen.get(found.sha256) or seen.get(found.stored_sha256):
                left_out.append(LeftOut(url=url, reason=f"it is the same picture as {same}"))
            else:
                seen |= {found.sha256: url, found.stored_sha256: url}
                chosen.append(_picture(label, term, found))
    say(f"search: {label}: {len(chosen)} pictures, {len(left_out)} left out")
    _check_enough(label, term, len(chosen), count, left_out, len(unreachable), broken_off, say)
    # More pictures are wanted another time beside the same ones: an unreachable URL is tried again, but last.
    urls = sorted(known.urls, key=lambda url: url in unreachable)
    store.remember(known.model_copy(update={"urls": urls, "refused": refused}))
    return chosen, left_out


def _addresses(term: str, count: int, store: Store, say: Say) -> tuple[Found, str | None]:
    """Return URLs for a term, earlier ones first, and why there may be more, or None.

    This order keeps earlier pictures when more are wanted. A search that broke off is not remembered as complete: the
    next one asks again.
    """
    found, wanted = store.found(term), ceil(SPARE * count) + 10
    if found.asked >= wanted:
        return found, None
    answer = find(term, wanted, found.urls)
    urls = list(dict.fromkeys([*found.urls, *answer.urls]))
    if answer.trouble:
        say(f"search: {term!r}: broke off at {len(urls)} of {wanted} addresses ({answer.trouble})")
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
    say: Say,
) -> None:
    """Raise :class:`StudyError` if the network cut the search short or fewer than two pictures are usable.

    A search that merely finds too little fills a smaller folder.
    """
    tried = found + len(left_out)
    first = f", first {left_out[0].url} ({left_out[0].reason})" if left_out else ""
    if found < wanted and 2 * unreachable > tried:
        raise StudyError(
            f"{label}: {found} of {wanted} pictures are available, because {unreachable} of {tried} "
            f"addresses do not answer{first}{OFFLINE}, or ask for fewer (--images)"
        )
    if found < wanted and broken_off:
        raise StudyError(
            f"{label}: {found} of {wanted} pictures are available, because the search for {term!r} "
            f"broke off ({broken_off}){OFFLINE}, or ask for fewer (--images)"
        )
    if found < 2:
        raise StudyError(
            f"{label}: {term!r} is not allowed: {found} of the {tried} pictures found can be used; "
            f"at least two are needed{first}"
        )
    if found < wanted:
        say(f"search: {label}: found only {found} of the {wanted} wanted pictures")


def _again(given: Manifest, collector: Collector, say: Say) -> tuple[list[Picture], list[tuple[str, LeftOut]]]:
    """Return the pictures that a manifest lists, and those that are gone or have changed, with their classes."""
    wanted = given.pictures
    chosen: list[Picture] = []
    gone: list[tuple[str, LeftOut]] = []
    other_bytes = 0
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        brought = collector.bring([Wanted(picture.url, picture.sha256) for picture in batch])
        for picture, found in zip(batch, brought, strict=True):
            if isinstance(found, Refused):
                gone.append((picture.label, LeftOut(url=picture.url, reason=str(found))))
            else:
                chosen.append(picture.model_copy(update={"stored_sha256": found.stored_sha256}))
                other_bytes += found.stored_sha256 != picture.stored_sha256
    if other_bytes:
        say(
            f"search: {other_bytes} of {len(wanted)} pictures have the same download but other stored bytes: stored "
            f"by {encoder()} here, and by {given.encoder} in the manifest"
        )
    return chosen, gone


def _incomplete(
    name: str,
    given: Manifest,
    rest: Manifest,
    gone: Sequence[tuple[str, LeftOut]],
    collector: Collector,
    folder: Path,
    say: Say,
) -> StudyError:
    """Write which pictures remain, and return the error that says which are gone."""
    refused = f"--manifest: {name!r}: "
    first = f"first {gone[0][1].url} ({gone[0][1].reason})"
    if not rest.pictures and not collector.answered:
        return StudyError(f"{refused}none of its {len(gone)} addresses answers, {first}{OFFLINE}")
    for label, item in gone:
        say(f"search: {label}: gone: {item.url}: {item.reason}")
    write_if_changed(folder / REMAINING, rest.model_dump_json(indent=1))
    lost = Counter(label for label, _ in gone)
    counts = ", ".join(f"{label} {count} of {given.counts[label]}" for label, count in sorted(lost.items()))
    return StudyError(
        f"{refused}{len(gone)} of {len(given.pictures)} pictures are gone or have changed ({counts}), {first}; "
        f"{folder.name}/{REMAINING} lists each of them under left_out, and the others: to go on with those alone, give "
        "that file as --manifest"
    )


def _picture(label: str, term: str, found: Stored) -> Picture:
    return Picture(
        label=label,
        term=term,
        url=found.url,
        bytes=found.bytes,
        sha256=found.sha256,
        stored_sha256=found.stored_sha256,
    )


def _manifest(max_size: int, pictures: Sequence[Picture], left_out: list[LeftOut]) -> Manifest:
    by_name = {picture.name: picture for picture in pictures}
    ordered = [picture for _, picture in sorted(by_name.items())]
    return Manifest(max_size=max_size, encoder=encoder(), pictures=ordered, left_out=left_out)


def _lay_out(manifest: Manifest, store: Store, folder: Path) -> None:
    """Lay the pictures out as files by class, without those of an earlier search, and write the manifest last.

    Only what the store holds is removed.
    """
    wanted = {picture.name: picture for picture in manifest.pictures}
    ours = {f"{sha256[:16]}.jpg" for sha256 in store.by_sha256}
    for path in folder.glob("*/*.jpg"):
        if path.name in ours and path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
            with suppress(OSError):  # it holds others
                path.parent.rmdir()
    for name, picture in wanted.items():
        _link(store.path(store.by_sha256[picture.sha256]), folder / name)
    write_if_changed(folder / MANIFEST, manifest.model_dump_json(indent=1))


def _link(source: Path, target: Path) -> None:
    """Give the same file a second name, or copy it if the file system has no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
    os.utime(target, (ONE_TIME, ONE_TIME))
