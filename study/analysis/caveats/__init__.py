"""What a reader must know before believing the numbers: one class for each caveat, from its detection to its words."""
