"""Claims about training language models: a script of its own, which is measured as a command."""
