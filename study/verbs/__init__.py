"""The verbs of the command line, declared with their arguments; each imports only what it needs."""
