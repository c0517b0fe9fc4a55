"""The claims and their sources in words."""
