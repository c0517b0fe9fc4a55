"""One self-contained page about every selected study."""
