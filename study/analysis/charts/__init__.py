"""The charts of the page: SVG as text, with real letters, coloured by the page's style.

Pure functions: values in, text out. Each chart is drawn twice, for a desk and for a phone; the style shows one of them.
"""
