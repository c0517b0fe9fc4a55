"""The findings of the statistics in words: one function for each kind, and no number that a finding does not hold."""
