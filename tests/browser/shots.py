"""Pictures of a page for the eye: three widths, light and dark.

    python -m tests.browser.shots PAGE FOLDER

writes FOLDER/1280-light-01.png and so on: the page with all details opened, in pieces from its top
to its end.

    python -m tests.browser.shots PAGE FILE.png

writes the first screen alone, as README.md shows that of the example.
"""

import sys
from itertools import product
from pathlib import Path

from tests.browser.chromium import Browser, installed, started

PIECE = 2400
"""The height of a piece in CSS pixels."""
FIRST = (900, 1060)
"""Width and height of the first screen."""


def shoot_first(browser: Browser, source: Path, picture: Path) -> None:
    """Write the first screen of the page in light colours."""
    with browser.page() as page:
        page.viewport(*FIRST)
        page.media("light")
        page.open(source)
        picture.write_bytes(page.screenshot(0, FIRST[1]))


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
    if len(sys.argv) != 3:
        print("usage: python -m tests.browser.shots PAGE FOLDER|FILE.png", file=sys.stderr)
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
        (shoot_first if target.suffix == ".png" else shoot_all)(browser, source, target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
