"""The documentation site: `make docs` builds it from this folder's pages. No page loads anything
from a network."""

from sphinx.application import Sphinx

project = "Reproducible training studies"
extensions = ["myst_parser"]
myst_heading_anchors = 3
html_theme = "alabaster"
html_theme_options = {
    "page_width": "70rem",
    "sidebar_width": "15rem",
    "font_family": "system-ui, sans-serif",
}
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_use_index = False
exclude_patterns = ["paper.md"]  # its citations are for the journal

OUTSIDE = {
    "../config/README.md": "configuration.md",
    "../docker/README.md": "containers.md",
    "../benchmarks/README.md": "benchmarks.md",
    "../replications/README.md": "replications.md",
    "../../benchmarks/README.md": "../benchmarks.md",
    "../../docker/README.md": "../containers.md",
}
"""Files outside this folder, by the page that includes each: links name the file, so that they work
in a checkout."""


def link_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Let the links of one page lead to the site's pages, and not to the files that these
    include."""
    for file, included in OUTSIDE.items():
        source[0] = source[0].replace(f"]({file}", f"]({included}")


def setup(app: Sphinx) -> None:
    """Register the change of links."""
    app.connect("source-read", link_pages)
