"""Results folders side by side."""
