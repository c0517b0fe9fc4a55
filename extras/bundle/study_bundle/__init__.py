"""Results in one archive."""
