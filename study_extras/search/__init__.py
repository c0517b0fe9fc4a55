"""An image search that fills a folder, and fills it again from its manifest."""
