"""What the software itself costs, and how often its words are right. Run by hand: no test asserts a
time."""
