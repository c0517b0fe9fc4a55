"""The same training in plain torch."""
