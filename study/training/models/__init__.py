"""Networks: built, given their weights, made ready for a dataset."""
