"""Pictures of a page for the eye: three widths, light and dark.

    python -m tests.browser.shots PAGE FOLDER

writes FOLDER/1280-light-01.png and so on: the page with all details opened, in pieces from its top
to its end.

    python -m tests.browser.shots PAGE FILE.png

writes the first screen alone, as README.md shows that of the example; after a third word, `arrows`,
with what to look at first, as ``docs/first-study.md`` shows it.
"""

import io
import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from matplotlib.font_manager import findfont
from PIL import Image, ImageDraw, ImageFont

from tests.browser.chromium import Browser, installed, started

PIECE = 2400
"""The height of a piece in CSS pixels."""
FIRST = (900, 1060)
"""Width and height of the first screen."""
ARROWS = {
    ".answer": "1. The answer,\nand in grey\nhow sure it is",
    "figure svg": "2. Every run is\na dot, beside it\nthe verdict",
    ".rail section:last-of-type": "3. What would\ndecide more,\nready to paste",
}
"""What to look at first, by the part of the page that the arrow ends at."""
MARGIN, INK = 200, "#b4501e"
TOPS = (
    "[...Object.keys(ARROWS)].map(one => document.querySelector(one).getBoundingClientRect().top)"
)


def with_arrows(screen: bytes, tops: Sequence[float]) -> bytes:
    """Return a picture of a page with a margin at its right, and an arrow from there to each of
    the heights."""
    page = Image.open(io.BytesIO(screen)).convert("RGB")
    made = Image.new("RGB", (page.width + MARGIN, page.height), "white")
    made.paste(page)
    draw = ImageDraw.Draw(made)
    font = ImageFont.truetype(findfont("DejaVu Sans:bold"), 15)
    for top, text in zip(tops, ARROWS.values(), strict=True):
        tip, middle = page.width - 25, top + 32
        draw.line((tip, middle, page.width + 28, middle), INK, 3)
        draw.polygon(((tip - 10, middle), (tip, middle - 6), (tip, middle + 6)), INK)
        draw.multiline_text((page.width + 38, middle - 28), text, INK, font)
    file = io.BytesIO()
    made.quantize(256).save(file, "PNG", optimize=True)
    return file.getvalue()


def shoot_first(browser: Browser, source: Path, picture: Path, arrows: bool) -> None:
    """Write the first screen of the page in light colours."""
    with browser.page() as page:
        page.viewport(*FIRST)
        page.media("light")
        page.open(source)
        screen = page.screenshot(0, FIRST[1])
        tops = page.evaluate(TOPS.replace("ARROWS", json.dumps(ARROWS)))
        picture.write_bytes(with_arrows(screen, tops) if arrows else screen)


def shoot_all(browser: Browser, source: Path, folder: Path) -> None:
    """Write all pieces of the page at each width and in each colour scheme."""
    folder.mkdir(parents=True, exist_ok=True)
    for width, scheme in product((1280, 768, 375), ("light", "dark")):
        with browser.page() as page:
            page.viewport(width)
            page.media(scheme)
            page.open(source)
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
            height = page.evaluate("document.documentElement.scrollHeight")
            for number, top in enumerate(range(0, height, PIECE), 1):
                path = folder / f"{width}-{scheme}-{number:02d}.png"
                path.write_bytes(page.screenshot(top, min(PIECE, height - top)))
                print(path)


def main() -> int:
    """Write the pictures of the page that the command names."""
    if len(sys.argv) not in (3, 4):
        usage = "usage: python -m tests.browser.shots PAGE FOLDER|FILE.png [arrows]"
        print(usage, file=sys.stderr)
        return 2
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    program = installed()
    if program is None or not source.is_file():
        print(
            f"error: {source}: no such file" if program else "error: no Chromium on this machine",
            file=sys.stderr,
        )
        return 1
    with started(program) as browser:
        if target.suffix == ".png":
            shoot_first(browser, source, target, arrows="arrows" in sys.argv)
        else:
            shoot_all(browser, source, target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
