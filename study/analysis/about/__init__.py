"""What was run on what, as the records tell it."""
