"""The charts of the page, drawn as SVG, and the pictures that are saved as files, by matplotlib."""
