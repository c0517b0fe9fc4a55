"""The one error type that a user is meant to read."""


class StudyError(Exception):
    """Bad input, or a machine that cannot serve, as one line: the key, the value and the allowed values."""
