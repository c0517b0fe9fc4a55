"""What the software itself costs. Run by hand: no test asserts a time."""
