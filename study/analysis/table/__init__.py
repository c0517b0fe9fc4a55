"""Records to one table."""
