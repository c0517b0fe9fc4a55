"""When a browser paints a report first: milliseconds from the start of loading, once in each new browser.

``python -m benchmarks.many_records --runs 1000 --folder FOLDER`` makes a report of 1000 runs, and ``python -m
benchmarks.first_paint FOLDER/1000/report.html [--times 5]`` prints its size and what Chromium measures of it.
"""

import argparse
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

from tests.browser.chromium import Page, installed, started

ENTRIES = """Object.fromEntries([
  ...performance.getEntriesByType('paint').map(entry => [entry.name, entry.startTime]),
  ...performance.getEntriesByType('navigation').map(entry => ['load', entry.loadEventEnd])])"""
FIRST = "first-contentful-paint"


def paint(page: Page, source: Path) -> dict[str, Any]:
    """Return the milliseconds until the browser painted the page first, and until it was loaded, by their names."""
    page.open(source)
    if not page.until(f"performance.getEntriesByName('{FIRST}').length > 0", seconds=60):
        raise SystemExit(f"{source}: the browser painted nothing")
    found: dict[str, Any] = page.evaluate(ENTRIES)
    return found


def main() -> int:
    """Print the page's size, a line for each time, and the median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    program = installed()
    if program is None:
        print("error: no Chromium on this machine", file=sys.stderr)
        return 1
    print(f"{options.page.stat().st_size / 1e6:.2f} MB; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("| first paint (ms) | loaded (ms) |")
    print("| --- | --- |")
    found = []
    for _ in range(options.times):
        with started(program) as browser, browser.page() as page:
            times = paint(page, options.page)
        found.append(times[FIRST])
        print(f"| {times[FIRST]:.0f} | {times['load']:.0f} |", flush=True)
    print(f"first paint, median: {median(found):.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
