"""What can be declared: the keys of a study and of a selection, read from YAML and checked."""
