"""Results folders side by side: which is faster at the same work."""
