"""Results in one archive, and out of it again."""
