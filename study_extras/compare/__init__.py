"""Results folders side by side: which is faster at the same work, and whether a night passes a gate."""
