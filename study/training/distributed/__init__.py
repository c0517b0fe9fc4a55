"""A run of several processes: torch's launcher on each node, and its ranks."""
