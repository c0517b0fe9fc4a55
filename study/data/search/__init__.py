"""An image search, and its repetition from a manifest."""
