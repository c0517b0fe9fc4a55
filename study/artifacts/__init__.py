"""One model for each kind of file that the wings hand to each other: the contract between them."""
