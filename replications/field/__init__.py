"""Claims of the field about training speed: a study each, and a network."""
