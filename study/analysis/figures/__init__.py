"""The one system of charts: matplotlib figures, which the page holds as SVG, and which are saved as files."""
